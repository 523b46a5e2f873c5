"""Google Cloud DNS: what each answer means, a lost one, quotas, tokens, and how a region file opens it."""

import asyncio
from pathlib import Path

import pytest
from cloud_dns_fake import PROJECT, TOKEN, ZONE, Answer, CloudDnsFake, Direct, error, record, serve
from cloud_dns_stage import CloudStage
from dns_scene import DOMAIN, change, marker, standing

from fencepost.adapters import dns_cloud_dns
from fencepost.adapters.dns_presentation import quoted, unquoted
from fencepost.adapters.https import Https, safe_url
from fencepost.core.dns_numbers import join_strings
from fencepost.core.record_set import content
from fencepost.core.zone import Change, Live
from fencepost.ports import Misconfigured, Refused, Unavailable

NAME = "api.example.test"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look often, and pause shortly."""
    monkeypatch.setattr(dns_cloud_dns, "POLL_S", 0.02)
    monkeypatch.setattr("fencepost.adapters.https.PAUSE_MIN_S", 0.001)


@pytest.fixture
def direct() -> CloudStage:
    """A stand-in of its own, without any network."""
    return CloudStage(direct=True)


@pytest.mark.parametrize(
    ("answer", "kind", "hint"),
    [
        ((401, error(401, "authError", "Invalid Credentials")), Misconfigured, "tokens last an hour"),
        ((403, error(403, "forbidden", "Forbidden")), Misconfigured, "roles/dns.admin"),
        ((404, error(404, "notFound", "The 'parameters.managedZone' resource …")), Misconfigured, "managed_zone"),
        ((403, error(403, "rateLimitExceeded", "Rate Limit Exceeded")), Unavailable, "less often"),
        ((429, error(429, "rateLimitExceeded", "Quota exceeded")), Unavailable, "less often"),
        ((503, {}), Unavailable, "less often"),
        ((302, {}), Unavailable, "documentation"),
        ((400, error(400, "invalid", "Invalid value for 'entity.change.additions[0].name'")), Refused, "as it is"),
    ],
)
def test_refusals_say_what_to_do(direct: CloudStage, answer: Answer, kind: type[Exception], hint: str) -> None:
    """Each of Google's answers is one of three kinds, with its own words, and no write is sent twice for it."""

    async def act() -> None:
        port = direct.port()
        await port.read()
        direct.fake.disturb = lambda method, _path: answer if method == "POST" else None
        direct.fake.asked.clear()
        with pytest.raises(kind, match=str(answer[0])) as caught:
            await port.commit((change(Live(NAME), 1, "192.0.2.1"),))
        assert hint in caught.value.hint  # type: ignore[attr-defined]
        assert caught.value.where.endswith(f"{NAME}, gen none -> 1")  # type: ignore[attr-defined]
        assert TOKEN not in f"{caught.value!r}{caught.value.hint}"  # type: ignore[attr-defined]
        assert sum(method == "POST" for method, _ in direct.fake.asked) == 1
        direct.fake.disturb = lambda _method, _path: None
        assert await port.commit((change(Live(NAME), 1, "192.0.2.1"),))

    direct.run(act)


@pytest.mark.parametrize("ttl", [-1, 2**31, 2**63])
def test_a_ttl_that_is_none_is_no_answer(direct: CloudStage, ttl: int) -> None:
    """RFC 2181 section 8: 31 bits; an answer with more is nobody's listing."""

    async def act() -> None:
        await direct.hand(standing(NAME, 1, "192.0.2.1"))
        for each in direct.fake.sets.values():
            if each["type"] == "A":
                each["ttl"] = ttl
        with pytest.raises(Unavailable, match="makes no sense"):
            await direct.port().read()

    direct.run(act)


@pytest.mark.parametrize("reason", [["a"], {"a": 1}, 5, None])
def test_an_error_of_another_shape_is_told_too(direct: CloudStage, reason: object) -> None:
    """What stands between here and Google may answer in JSON of its own."""

    async def act() -> None:
        said = {"error": {"errors": [{"reason": reason}], "message": ["x" * 5000]}}
        direct.fake.disturb = lambda _method, _path: (403, said)
        with pytest.raises(Misconfigured, match="403") as caught:
            await direct.port().read()
        assert len(str(caught.value)) < 600

    direct.run(act)


def test_a_list_that_goes_round_in_circles_ends(direct: CloudStage) -> None:
    """The page after A is B, and that after B is A: neither is the same as the one before."""

    class Circling(Direct):
        async def __call__(self, method: str, url: str, token: str, body: bytes) -> tuple[int, bytes]:
            if "/rrsets" not in url:
                return await super().__call__(method, url, token, body)
            await asyncio.sleep(0)
            return 200, b'{"nextPageToken": "%s"}' % (b"B" if "pageToken=A" in url else b"A")

    async def act() -> None:
        with pytest.raises(Unavailable, match="never ends"):
            async with asyncio.timeout(10):
                await direct.port(send=Circling(direct.fake)).read()

    direct.run(act)


def test_lost_answer_is_unknown(direct: CloudStage) -> None:
    """The write arrived and its answer didn't: unavailable, never sent again; the next read finds it written."""

    class Losing(Direct):
        async def __call__(self, method: str, url: str, token: str, body: bytes) -> tuple[int, bytes]:
            found = await super().__call__(method, url, token, body)
            if method == "POST":
                raise TimeoutError("no answer within 10 s")
            return found

    async def act() -> None:
        port = direct.port(send=Losing(direct.fake))
        await port.read()
        with pytest.raises(Unavailable, match="no answer"):
            await port.commit((change(Live(NAME), 1, "192.0.2.1"),))
        assert sum(method == "POST" for method, _ in direct.fake.asked) == 1
        assert list(await port.read()) == [NAME]
        assert port.live(NAME) == standing(NAME, 1, "192.0.2.1")

    direct.run(act)


def test_rate_exceeded_loses_and_doubles_nothing(direct: CloudStage) -> None:
    """external-dns #1293, octodns #96: each sixth call is "Rate Limit Exceeded"; later all is done once."""

    async def act() -> None:
        port, calls, turned_away = direct.port(), iter(range(1, 10_000)), list[str]()
        refused = (403, error(403, "rateLimitExceeded", "Rate Limit Exceeded"))

        def disturb(method: str, _path: str) -> Answer | None:
            if next(calls) % 6:
                return None
            turned_away.append(method)
            return refused

        direct.fake.disturb = disturb
        wanted = {f"r{at}.example.test": standing(f"r{at}.example.test", 1, "192.0.2.1") for at in range(20)}
        for _ in range(100):
            try:
                await port.read()
                todo = [live for name, live in wanted.items() if port.live(name) != live]
                if not todo:
                    break
                assert await port.commit((change(port.live(todo[0].name), 1, "192.0.2.1"),))
                assert port.live(todo[0].name) == todo[0], "what is said to be done stands"
            except Unavailable:
                continue
        assert "POST" in turned_away
        written = [each["name"] for made in direct.fake.changes for each in made["additions"] if each["type"] == "A"]
        assert sorted(written) == sorted(f"{name}." for name in wanted)

    direct.run(act)


def test_too_big_is_refused_with_the_numbers(direct: CloudStage) -> None:
    """DNSControl #908: past its quotas (values a set, sets a change) nothing is sent, and the endpoint is named."""

    async def act() -> None:
        port = direct.port()
        await port.read()
        value = content([f"10.0.{at}.1" for at in range(101)], 30)
        with pytest.raises(Refused, match=r"api\.example\.test is too big: .* 101 values in one set") as caught:
            await port.commit((Change(NAME, Live(NAME), marker(1, value), value, "4"),))
        assert "more endpoints" in caught.value.hint
        with pytest.raises(Refused, match=r"1,201 record sets") as caught:
            await port.commit(tuple(change(Live(f"b{at}.example.test"), 1, "192.0.2.1") for at in range(600)))
        assert caught.value.hint == "split the batch"
        value = content([f"2001:db8:aaaa:bbbb:cccc:dddd:eeee:{at:x}" for at in range(4096, 4146)], 30)
        lives = [Live(f"b{at}.example.test") for at in range(60)]
        with pytest.raises(Refused, match=r"121 record sets, 1[0-9]{2},[0-9]{3} bytes of values, 50 values"):
            await port.commit(tuple(Change(live.name, live, marker(1, value), value, "6") for live in lives))
        assert not any(method == "POST" for method, _ in direct.fake.asked)

    direct.run(act)


def test_what_is_not_ours_is_left_alone(direct: CloudStage) -> None:
    """A set with a routing policy, a name in Route 53's spelling of a wildcard, data that can't be read, MX, SOA."""

    async def act() -> None:
        policy = {"name": f"{NAME}.", "type": "A", "ttl": 30, "rrdatas": [], "routingPolicy": {"wrr": {"items": []}}}
        direct.fake.sets[f"{NAME}.", "A"] = policy
        odd = [record(f"odd.{DOMAIN}.", "A", 30, "not an address"), record(f"m.{DOMAIN}.", "MX", 30, "10 mail.")]
        direct.fake.write([], [*odd, record(f"\\052.w.{DOMAIN}.", "A", 30, "192.0.2.1")])
        port = direct.port()
        await port.read()
        assert port.live(NAME).other == ("A of another kind",)
        assert port.live(f"odd.{DOMAIN}").other == ("A of another kind",)
        assert port.live(f"*.w.{DOMAIN}").a == ("192.0.2.1",)
        for name in (NAME, f"odd.{DOMAIN}"):
            assert not await port.commit((change(Live(name), 1, "192.0.2.1"),))
        assert direct.fake.sets[f"{NAME}.", "A"] == policy

    direct.run(act)


def test_remove_is_exact(direct: CloudStage) -> None:
    """A scratch name goes wholly, marker and addresses; not if anything is other than was seen."""

    async def act() -> None:
        await direct.hand(standing(NAME, 1, "192.0.2.1"))
        port = direct.port()
        await port.read()
        seen = port.live(NAME)
        await direct.hand(standing(NAME, 2, "192.0.2.1"))
        assert not await port.remove(seen)
        await port.read()
        assert await port.remove(port.live(NAME))
        assert {key[1] for key in direct.fake.sets} == {"SOA", "NS"}
        assert port.live(NAME) == Live(NAME)

    direct.run(act)


def test_another_domains_zone(direct: CloudStage) -> None:
    """A managed zone that holds another domain is a person's business, not an empty domain."""

    async def act() -> None:
        direct.fake.domain = "example.org"
        with pytest.raises(Misconfigured, match=r'holds "example\.org\."'):
            await direct.port().read()

    direct.run(act)


def test_region_file_opens_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """[dns] provider = "clouddns": the port, over HTTP, with a token that is read anew at each use."""
    from fencepost import assembly
    from fencepost.settings import check

    (tmp_path / "token").write_text("old")
    (tmp_path / "token").chmod(0o600)
    (tmp_path / "region.toml").write_text(
        '[region]\nname = "eu-1"\n'
        f'[dns]\nprovider = "clouddns"\ndomain = "{DOMAIN}"\nproject = "{PROJECT}"\nmanaged_zone = "{ZONE}"\n'
        'token = { file = "token" }\n'
        '[pool.api]\nprobe = "http://:8080/healthz"\n[pool.api.targets]\na = ["192.0.2.10"]\n'
        f'[[endpoint]]\nname = "{NAME}"\npool = "api"\n'
    )
    report = check(tmp_path / "region.toml")
    assert not report.mistakes
    region = report.region
    assert region is not None

    async def act() -> None:
        fake = CloudDnsFake(DOMAIN)
        runner, url = await serve(fake)
        monkeypatch.setenv(dns_cloud_dns.URL_VARIABLE, url)
        (port,) = assembly.open_dns(region).values()
        try:
            with pytest.raises(Misconfigured, match="401"):
                await port.read()
            (tmp_path / "token").write_text(f"{TOKEN}\n")
            await port.read()
            assert await port.commit((change(Live(NAME), 1, "192.0.2.1"),))
            (tmp_path / "token").unlink()
            with pytest.raises(Misconfigured, match=r"token: .* is missing"):
                await port.read()
        finally:
            await port.close()
            await runner.cleanup()

    asyncio.run(act())


@pytest.mark.parametrize("url", ["http://dns.example", "ftp://127.0.0.1", "http://127.0.0.1.example"])
def test_token_goes_nowhere_in_the_clear(url: str) -> None:
    """RFC 6750 section 5.3: a bearer token only over TLS; plain HTTP only to this machine."""
    with pytest.raises(Misconfigured, match="https"):
        safe_url(url, "X")
    assert safe_url("http://[::1]:1/", "X") == "http://[::1]:1"


def test_token_of_several_lines_is_refused() -> None:
    """A token that would add a header of its own is refused, and not repeated."""
    with pytest.raises(Misconfigured) as caught:
        asyncio.run(Https()("GET", "http://127.0.0.1:1", "a\r\nX: b", b""))
    assert "X: b" not in str(caught.value)


@pytest.mark.parametrize("strings", [(b"a" * 255, b""), (b'"\\\\"',), (bytes(range(256))[:200],), (b"a b;c",)])
def test_text_round_trips(strings: tuple[bytes, ...]) -> None:
    """RFC 1035 section 5.1: quotes, backslashes and bytes outside ASCII come back as they went."""
    assert unquoted(quoted(strings)) == join_strings(strings)
    assert unquoted('v=spf1 "a b"') == join_strings((b"v=spf1", b"a b"))
