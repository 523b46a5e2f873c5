"""A stand-in for Google Cloud DNS: one managed zone, its list of changes, and refusals worded as Google words them.

It is strict where the fence rests on it: a change applies whole or not at all, a deletion must match a record set
exactly, an addition must find nothing of its name and type. Its words and reasons are those of public reports
(external-dns #467 and #3311, terraform-provider-google #9112, gitpod #9784). As on the service, a change leaves the SOA
record alone unless it names it (external-dns #1219). ``lax`` has deletions match whatever stands, as no provider
should.
"""

import asyncio
import ipaddress
import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
from aiohttp import web

PROJECT, ZONE, TOKEN = "a-project", "example-test", "ya29.a-token-for-tests"
Answer = tuple[int, dict[str, Any]]
Key = tuple[str, str]


class Refusal(Exception):  # noqa: N818  it is an answer
    """An error answer: status, reason, words."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.answer: Answer = (status, error(status, reason, message))


def error(status: int, reason: str, message: str) -> dict[str, Any]:
    """An error's body."""
    inner = {"message": message, "domain": "global", "reason": reason}
    return {"error": {"code": status, "message": message, "errors": [inner]}}


class CloudDnsFake:
    """One managed zone. ``disturb`` may answer a request in its place: (method, path) -> answer, or None."""

    def __init__(self, domain: str, *, lax: bool = False, page: int = 1000) -> None:
        self.domain, self.lax, self.page = domain, lax, page
        self.token = TOKEN
        self.sets: dict[Key, dict[str, Any]] = {}
        self.changes: list[dict[str, Any]] = []
        self.asked: list[tuple[str, str]] = []
        self.disturb: Callable[[str, str], Answer | None] = lambda _method, _path: None
        self.before_write: Callable[[], None] = lambda: None
        apex = f"{domain}."
        soa = "ns-cloud-a1.googledomains.com. cloud-dns-hostmaster.google.com. 1 21600 3600 259200 300"
        self.write([], [record(apex, "SOA", 21600, soa), record(apex, "NS", 21600, "ns-cloud-a1.googledomains.com.")])

    def write(self, gone: list[Key], come: list[dict[str, Any]]) -> None:
        """A hand's change, asked for nothing: sets of these keys go, these come."""
        gone = [key for key in gone if key in self.sets]
        self._enact([self.sets[key] for key in gone], come)

    def handle(self, method: str, url: str, token: str, body: bytes) -> Answer:
        """One request; status and JSON."""
        parts = urlsplit(url)
        self.asked.append((method, parts.path.rpartition("/")[2]))
        disturbed = self.disturb(method, parts.path)
        if disturbed is not None:
            return disturbed
        try:
            return 200, self._answer(
                method, parts.path, {k: v[0] for k, v in parse_qs(parts.query).items()}, token, body
            )
        except Refusal as refusal:
            return refusal.answer

    def _answer(self, method: str, path: str, query: dict[str, str], token: str, body: bytes) -> dict[str, Any]:
        if token != self.token:
            raise Refusal(401, "authError", "Request had invalid authentication credentials.")
        found = re.fullmatch(r"/dns/v1/projects/([^/]+)/managedZones/([^/]+)(?:/(\w+))?", path)
        if found is None or found[1] != PROJECT:
            raise Refusal(403, "forbidden", "Forbidden")
        if found[2] != ZONE:
            message = f"The 'parameters.managedZone' resource named '{found[2]}' does not exist."
            raise Refusal(404, "notFound", message)
        if method == "POST" and found[3] == "changes":
            return self._create(json.loads(body))
        if found[3] == "rrsets":
            return self._paged(
                "rrsets", sorted(self.sets.values(), key=lambda each: (each["name"], each["type"])), query
            )
        if found[3] == "changes":
            assert query["sortBy"] == "changeSequence"
            listed = self.changes[::-1] if query["sortOrder"] == "descending" else self.changes
            return self._paged("changes", listed, query)
        return {"kind": "dns#managedZone", "name": ZONE, "dnsName": f"{self.domain}.", "id": "1"}

    def _paged(self, key: str, listed: list[dict[str, Any]], query: dict[str, str]) -> dict[str, Any]:
        # A token names the last element shown, so that a list that grows at its head is not read askew.
        start = 0
        if "pageToken" in query:
            start = next(at for at, each in enumerate(listed) if token_of(each) == query["pageToken"]) + 1
        most = min(int(query["maxResults"]), self.page)
        found: dict[str, Any] = {"kind": f"dns#{key}ListResponse", key: listed[start : start + most]}
        if start + most < len(listed):
            found["nextPageToken"] = token_of(listed[start + most - 1])
        return found

    def _create(self, change: dict[str, Any]) -> dict[str, Any]:
        self.before_write()
        gone, come = change.get("deletions", []), [dict(each) for each in change.get("additions", [])]
        if not gone and not come:
            raise Refusal(400, "required", "The 'entity.change' parameter is required but was missing.")
        after = dict(self.sets)
        for at, each in enumerate(gone):
            self._check_deletion(at, each)
            after.pop(keyed(each), None)
        for at, each in enumerate(come):
            self._check_addition(at, each, after)
            after[keyed(each)] = each
        for name in {each["name"] for each in come}:
            types = [kind for owner, kind in after if owner == name]
            if "CNAME" in types and len(types) > 1:
                message = (
                    f"The resource record set 'entity.change.additions[{name}]' is invalid because the DNS name"
                    f" '{name}' has a CNAME resource record set."
                )
                raise Refusal(400, "cnameResourceRecordSetConflict", message)
        if not {(f"{self.domain}.", "SOA"), (f"{self.domain}.", "NS")} <= after.keys():
            raise Refusal(400, "containerNotEmpty", "The SOA and NS record sets of the apex can't be deleted.")
        return self._enact(gone, come)

    def _check_deletion(self, at: int, each: dict[str, Any]) -> None:
        held = self.sets.get(keyed(each))
        if held is None and not self.lax:
            shown = f"{each['name']} ({each['type']})"
            message = f"The 'entity.change.deletions[{at}]' resource named '{shown}' does not exist."
            raise Refusal(404, "notFound", message)
        same = held is not None and shape(held) == shape(each)
        if not same and not self.lax:
            raise Refusal(412, "conditionNotMet", f"Precondition not met for 'entity.change.deletions[{at}]'")

    def _check_addition(self, at: int, each: dict[str, Any], after: dict[Key, dict[str, Any]]) -> None:
        name = each["name"]
        if not name.endswith(f"{self.domain}.") or any(not 0 < len(label) < 64 for label in name[:-1].split(".")):
            raise Refusal(400, "invalid", f"Invalid value for 'entity.change.additions[{at}].name': '{name}'")
        if not each["rrdatas"] or len(each["rrdatas"]) > 100 or not valid(each):
            raise Refusal(400, "invalid", f"Invalid value for 'entity.change.additions[{at}].rrdata[0]'")
        if keyed(each) in after and not self.lax:
            shown = f"{name} ({each['type']})"
            message = f"The resource 'entity.change.additions[{at}]' named '{shown}' already exists"
            raise Refusal(409, "alreadyExists", message)

    def _enact(self, gone: list[dict[str, Any]], come: list[dict[str, Any]]) -> dict[str, Any]:
        for each in gone:
            self.sets.pop(keyed(each), None)
        for each in come:
            self.sets[keyed(each)] = {"kind": "dns#resourceRecordSet", **each}
        made = {"kind": "dns#change", "additions": come, "deletions": gone, "startTime": "2026-01-01T00:00:00.000Z"}
        self.changes.append({**made, "id": str(len(self.changes)), "status": "pending", "isServing": False})
        return self.changes[-1]


class Direct:
    """Sends to the stand-in without any network; other tasks have a turn before and after."""

    def __init__(self, fake: CloudDnsFake) -> None:
        self.fake = fake

    async def __call__(self, method: str, url: str, token: str, body: bytes) -> tuple[int, bytes]:
        """As the port's sender."""
        await asyncio.sleep(0)
        status, answer = self.fake.handle(method, url, token, body)
        await asyncio.sleep(0)
        return status, msgspec.json.encode(answer)

    async def close(self) -> None:
        """Nothing to let go of."""


async def serve(fake: CloudDnsFake) -> tuple[web.AppRunner, str]:
    """The stand-in over HTTP on a free loopback port; what to clean up, and its address."""

    async def answer(request: web.Request) -> web.Response:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        status, said = fake.handle(request.method, str(request.rel_url), token, await request.read())
        return web.json_response(said, status=status)

    app = web.Application(client_max_size=1 << 24)
    app.router.add_route("*", "/{rest:.*}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}"


def record(name: str, kind: str, ttl: int, *values: str) -> dict[str, Any]:
    """A record set as the API writes it."""
    return {"name": name, "type": kind, "ttl": ttl, "rrdatas": list(values)}


def token_of(each: dict[str, Any]) -> str:
    """What names an element of a list: a change's id, a record set's name and type."""
    return each.get("id") or f"{each['name']} {each['type']}"


def keyed(each: dict[str, Any]) -> Key:
    """What a record set is known by."""
    return each["name"], each["type"]


def shape(each: dict[str, Any]) -> tuple[int, list[str], Any]:
    """What a deletion must match, beside name and type."""
    return each["ttl"], sorted(each.get("rrdatas", [])), each.get("routingPolicy")


def valid(each: dict[str, Any]) -> bool:
    """Whether a set's values can be what they say."""
    try:
        if each["type"] == "A":
            return all(ipaddress.IPv4Address(value) for value in each["rrdatas"])
        if each["type"] == "AAAA":
            return all(ipaddress.IPv6Address(value) for value in each["rrdatas"])
    except ValueError:
        return False
    pattern = r'"(?:[ !#-\[\]-~]|\\[0-9]{3}|\\["\\])*"(?: "(?:[ !#-\[\]-~]|\\[0-9]{3}|\\["\\])*")*'
    return each["type"] != "TXT" or all(re.fullmatch(pattern, value) for value in each["rrdatas"])
