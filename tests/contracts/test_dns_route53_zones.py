"""Which hosted zone a domain is, what AWS has to allow, and what credentials and endpoints do."""

from pathlib import Path
from typing import Any

import pytest
from dns_scene import DOMAIN, change, standing
from route53_stage import CREDENTIALS, Route53Stage, server, stage

from fencepost.adapters.dns_route53 import Route53Dns, least_policy, open_domains
from fencepost.adapters.dns_route53.client import ACTIONS
from fencepost.core.instant import MILLISECOND
from fencepost.dev.route53 import Fault, Route53Server
from fencepost.ports import Misconfigured, PortError, Unavailable
from fencepost.settings import Region, judge

__all__ = ["server", "stage"]
NAME = "api.example.test"
POLICY_NAMES = "route53:ChangeResourceRecordSetsNormalizedRecordNames"


def region(dns: str = "", endpoints: tuple[str, ...] = (NAME,), domain: str = f'"{DOMAIN}"') -> Region:
    """A region on Route 53."""
    text = f'[region]\nname = "eu-1"\n[dns]\nprovider = "route53"\ndomain = {domain}\n{dns}\n'
    text += '[pool.web]\nprobe = "http://:80/"\n[pool.web.targets]\na = ["192.0.2.1", "192.0.2.2"]\n'
    text += "".join(f'[[endpoint]]\nname = "{name}"\npool = "web"\n' for name in endpoints)
    found = judge(text, "region.toml", {})
    assert found.region is not None, found.mistakes
    return found.region


def second_zone(server: Route53Server, private: bool) -> str:
    """Another hosted zone of the same name."""
    vpcs = (("eu-west-1", "vpc-1"),) if private else ()
    return server.within(lambda: server.account.create(f"{DOMAIN}.", "second", vpcs=vpcs)).id


@pytest.mark.parametrize("private", [False, True], ids=["public", "private"])
def test_two_hosted_zones_of_one_name_are_listed_and_one_must_be_named(stage: Route53Stage, private: bool) -> None:
    """Taking either would be a guess: a write to the one that nobody asks would look well."""
    second = second_zone(stage.server, private)

    async def act() -> None:
        with pytest.raises(Misconfigured) as caught:
            await stage.port().read()
        kind = "private" if private else "public"
        assert stage.by_hand.zone_id in caught.value.what
        assert f"{second} ({kind}, 2 record sets)" in caught.value.what
        assert "zone_id =" in caught.value.hint
        port = stage.port(zone_id=second)
        await port.read()
        assert await port.commit((change(port.live(NAME), 1, "192.0.2.1"),))
        assert stage.by_hand.sets() == []

    try:
        stage.run(act)
    finally:
        stage.server.within(lambda: stage.server.account.zones.pop(second))


def test_a_domain_without_a_hosted_zone_is_said(stage: Route53Stage) -> None:
    """The nearest zone that sorts after it isn't taken for it."""

    async def act() -> None:
        port = Route53Dns(stage.settings().__class__("example.aaa", "eu-1", endpoint=stage.server.url, requests=1000.0))
        stage._ports.append(port)
        with pytest.raises(Misconfigured, match=r"no hosted zone example\.aaa"):
            await port.read()

    stage.run(act)


def test_a_zone_id_of_another_domain_is_refused(stage: Route53Stage) -> None:
    """Unless the region has several domains: then it is that of another."""
    other = stage.server.create_zone("example.org")

    async def act() -> None:
        with pytest.raises(Misconfigured, match=r"is example\.org, not example\.test"):
            await stage.port(zone_id=other).read()
        await stage.port(zone_id=other, several=True).read()
        with pytest.raises(Misconfigured, match="NoSuchHostedZone"):
            await stage.port(zone_id="Z000").read()

    stage.run(act)


def allowed(policy: dict[str, Any]) -> set[str]:
    """The actions that a policy allows."""
    return {action.removeprefix("route53:") for each in policy["Statement"] for action in each["Action"]}


@pytest.mark.parametrize("with_id", [False, True])
def test_the_least_policy_allows_every_request_made_and_no_other(stage: Route53Stage, with_id: bool) -> None:
    """What is asked in a life of reading, writing, losing and looking again is exactly what it allows."""
    zone_id = stage.by_hand.zone_id if with_id else ""

    async def act() -> None:
        port = stage.port(zone_id=zone_id)
        await port.read()
        stage.by_hand.set(standing(NAME, 5, "192.0.2.5"))
        assert not await port.commit((change(port.live(NAME), 1, "192.0.2.1"),))
        await port.read()
        assert await port.commit((change(port.live(NAME), 6, "192.0.2.1"),))
        stage.server.faults.add(Fault("lost", "ChangeResourceRecordSets", times=1))
        with pytest.raises(Unavailable):
            await port.commit((change(port.live(NAME), 7, "192.0.2.1"),))
        await port.read()
        made = set(port.calls)
        assert made == allowed(least_policy(region(f'zone_id = "{zone_id}"' if with_id else "")))
        assert made <= ACTIONS

    stage.run(act)


def test_all_actions_are_in_some_policy() -> None:
    """None is asked for that no policy would allow; and no other than these four."""
    several = region('zone_id = "Z1"', domain=f'["{DOMAIN}", "example.org"]')
    assert allowed(least_policy(several)) == ACTIONS


def test_the_policy_is_limited_to_these_names_types_and_actions() -> None:
    """As IAM compares them: lower case, no final dot, octal escapes (Developer Guide, condition keys)."""
    made = least_policy(region('zone_id = "Z1"', (NAME, "*.example.test")))
    (write,) = [each for each in made["Statement"] if "Condition" in each]
    assert write["Action"] == ["route53:ChangeResourceRecordSets"]
    assert write["Resource"] == "arn:aws:route53:::hostedzone/Z1"
    assert write["Condition"]["ForAllValues:StringEquals"] == {
        "route53:ChangeResourceRecordSetsRecordTypes": ["A", "AAAA", "TXT"],
        "route53:ChangeResourceRecordSetsActions": ["CREATE", "DELETE"],
        POLICY_NAMES: [
            "\\052.example.test",
            "_fencepost._wildcard.example.test",
            "_fencepost.api.example.test",
            "api.example.test",
        ],
    }
    assert all(each["Resource"] != "*" for each in made["Statement"])


def test_a_policy_of_too_many_names_allows_the_domain() -> None:
    """IAM takes 6,144 characters; a policy that can't be attached would be no help."""
    many = tuple(f"a-rather-long-name-{index}.example.test" for index in range(90))
    (write,) = [each for each in least_policy(region(endpoints=many))["Statement"] if "Condition" in each]
    assert write["Condition"]["ForAllValues:StringLike"][POLICY_NAMES] == ["*.example.test", "example.test"]


def test_every_write_stays_within_the_policy(stage: Route53Stage) -> None:
    """The names, types and actions of what is sent are those that the policy has."""
    made = least_policy(region(endpoints=(NAME, "*.example.test")))
    (condition,) = [each["Condition"]["ForAllValues:StringEquals"] for each in made["Statement"] if "Condition" in each]
    sent: list[Any] = []

    async def act() -> None:
        port = stage.port()
        await port.read()
        ask = port._client.ask

        async def recorded(action: str, *args: Any, **arguments: Any) -> dict[str, Any]:
            sent.extend(arguments.get("ChangeBatch", {}).get("Changes", ()))
            return await ask(action, *args, **arguments)

        port._client.ask = recorded  # type: ignore[method-assign]
        for number, addresses in enumerate((("192.0.2.1", "2001:db8::1"), ("192.0.2.2",)), 1):
            names = (NAME, "*.example.test")
            assert await port.commit(tuple(change(port.live(name), number, *addresses) for name in names))

    stage.run(act)
    assert {each["Action"] for each in sent} == {"CREATE", "DELETE"}
    for each in sent:
        assert each["ResourceRecordSet"]["Name"].removesuffix(".") in condition[POLICY_NAMES]
        assert each["ResourceRecordSet"]["Type"] in ("A", "AAAA", "TXT")


def test_open_domains_reads_the_settings(stage: Route53Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS_ENDPOINT_URL_ROUTE_53 is AWS's own variable for another endpoint; the roles' shared file is in the folder."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_ROUTE_53", stage.server.url)

    async def act() -> None:
        ports = open_domains(region('requests = "50/s"'), tmp_path)
        assert list(ports) == [DOMAIN]
        stage._ports.append(ports[DOMAIN])
        await ports[DOMAIN].read()
        assert (tmp_path / "route53.db").exists()

    stage.run(act)


@pytest.mark.parametrize(
    ("code", "word"),
    [("AccessDenied", "--iam-policy"), ("InvalidClientTokenId", "access key"), ("ExpiredToken", "renew")],
)
def test_no_error_has_a_secret(stage: Route53Stage, code: str, word: str) -> None:
    """Nor has a port's repr, nor its settings': neither key id nor secret."""

    async def act() -> None:
        port = stage.port()
        stage.server.faults.add(Fault("error", code=code, status=403, message="User: arn:aws:iam::1:user/x is not"))
        with pytest.raises(Misconfigured) as caught:
            await port.read()
        text = caught.value.in_full + repr(caught.value) + repr(port) + repr(port._settings)
        assert word in text
        assert not any(secret in text for secret in CREDENTIALS.values())

    stage.run(act)


def test_without_credentials_it_says_so(stage: Route53Stage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """botocore's own chain, with nothing in it."""
    for name in CREDENTIALS:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_ENDPOINT_URL_ROUTE_53", stage.server.url)

    async def act() -> None:
        with pytest.raises(Misconfigured, match="credentials"):
            await stage.port(endpoint="").read()

    stage.run(act)


def test_a_place_where_nobody_listens_is_unavailable(stage: Route53Stage) -> None:
    """It may come: not a person's business yet."""

    async def act() -> None:
        port = stage.port(endpoint="http://127.0.0.1:9", timeout=500 * MILLISECOND)
        with pytest.raises(PortError) as caught:
            await port.read()
        assert isinstance(caught.value, Unavailable)

    stage.run(act)
