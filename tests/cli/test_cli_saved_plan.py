"""A saved plan, as a file: what is in it, what makes it stale, what is refused. Nothing is talked to."""

import json
from pathlib import Path

import pytest
from msgspec import structs

from fencepost.cli import saved_plan
from fencepost.cli.plan_document import document
from fencepost.cli.preview import Preview
from fencepost.cli.saved_plan import Basis, Seen, basis_of, load, moved, write
from fencepost.core.fence import Generation, Marker
from fencepost.core.record_set import content
from fencepost.core.store import Head, Plan, Row
from fencepost.core.traffic.membership import Member, Membership, State
from fencepost.core.zone import Live
from fencepost.ports import Inputs, Misconfigured, Refused
from fencepost.roles.configuration import Loaded
from fencepost.settings import load as load_region

REGION = load_region(Path(__file__).parents[2] / "src/fencepost/dev/sample.toml", {})
API = "api.example.test"
SIX = content([target.address for target in REGION.pools[0].targets], 5)
FIVE = content(SIX.a[:5], 5)


def found() -> Preview:
    """A preview that takes one address away."""
    marker = Marker.of("demo", "beef", Generation(0, 1), SIX, None, 1)
    lives = {API: Live(API, marker, SIX.a, (), 5)}
    head = Head("beef" * 8, 1, "n1", 1)
    row = Row.of(API, Generation(0, 2), FIVE, None, families="4")
    rows = (structs.replace(row, made_at=77),)
    pool = Membership("web", members=tuple(Member(each, "a", State.IN, 1) for each in SIX.a))
    inputs = Inputs(9, b"{}", {}, {"word": b"{}"}, ())
    plan = Plan(head, 2, 9, rows)
    known = Loaded(REGION, 4, 1)
    preview = Preview(REGION, known, {"web": pool}, {"web": pool}, {}, lives, {}, plan, 0.0, True, ())
    return structs.replace(preview, head=head, inputs=inputs, would=known)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """The preview, written down."""
    path = tmp_path / "p.json"
    write(path, found(), document(found()), by="ops")
    return path


def test_what_is_written_is_read_back_and_is_the_plans_own_document(saved: Path) -> None:
    """`fencepost.plan/1` for whoever reads that, with what it was made from beside it."""
    body = json.loads(saved.read_text())
    assert {key: body[key] for key in document(found())} == document(found())
    basis = load(saved)
    assert (basis.rows[0].content, basis.rows[0].made_at, basis.by) == (FIVE, 0, "ops")
    assert moved(basis, basis_of(found())) == []


NOW = basis_of(found())
STANDS = NOW.seen[0]
MOVED: list[tuple[Basis, str]] = [
    (structs.replace(NOW, head=structs.replace(NOW.head, number=2, nonce="n2")), "plan 2 was published since"),
    (structs.replace(NOW, head=structs.replace(NOW.head, nonce="n2")), "was published since"),
    (structs.replace(NOW, head=structs.replace(NOW.head, store="feed" * 8)), "the store is another one"),
    (structs.replace(NOW, revision=5), "revision 5, it was 4"),
    (structs.replace(NOW, file="0" * 16), "region.toml has changed"),
    (structs.replace(NOW, inputs=10, words="0" * 16), "drain, keep or pause"),
    (structs.replace(NOW, inputs=10, pools={"web": "0" * 16}), "targets of pool web"),
    (structs.replace(NOW, inputs=10, pools={}), "targets of pool web"),
    (
        structs.replace(NOW, seen=(structs.replace(STANDS, generation=Generation(0, 3)),)),
        "is at gen 3, it was at gen 1",
    ),
    (structs.replace(NOW, seen=(structs.replace(STANDS, generation=None, digest=""),)), "is at no marker"),
    (structs.replace(NOW, seen=(structs.replace(STANDS, digest="eu-2:0"),)), "is at gen 1"),
    (structs.replace(NOW, seen=(structs.replace(STANDS, records="0" * 16),)), "changed by hand"),
    (structs.replace(NOW, seen=(structs.replace(STANDS, ttl=6),)), "changed by hand"),
    (structs.replace(NOW, rows=()), "time has passed"),
    (structs.replace(NOW, rows=(structs.replace(NOW.rows[0], content=SIX),)), "time has passed"),
    (structs.replace(NOW, number=3), "time has passed"),
    (structs.replace(NOW, spends=("o",)), "time has passed"),
]


@pytest.mark.parametrize(("now", "what"), MOVED, ids=[each[1] for each in MOVED])
def test_whatever_has_moved_makes_it_stale(now: Basis, what: str) -> None:
    """Each part of what a plan was made from, alone."""
    said = moved(NOW, now)
    assert len(said) == 1
    assert what in said[0]


def test_a_checker_that_is_heard_again_is_no_other_world() -> None:
    """The inputs' snapshot rises with each report that changes a count; targets, states and weights are the same."""
    assert moved(NOW, structs.replace(NOW, inputs=NOW.inputs + 3, at=1, by="another")) == []


def test_every_part_of_the_basis_is_compared() -> None:
    """A part that is added and forgotten here would let a plan through that was made from something else."""
    compared = {"file", "revision", "head", "inputs", "words", "pools", "number", "rows", "spends", "seen"}
    named = {"region", "owner", "by", "at", "version"}
    assert set(Basis.__struct_fields__) == compared | named
    assert set(Seen.__struct_fields__) == {"name", "generation", "digest", "records", "ttl"}


def test_a_region_that_never_ran_has_nothing_to_save() -> None:
    """Without a store there is no head to compare with."""
    with pytest.raises(Refused, match="never run"):
        basis_of(structs.replace(found(), head=None))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", Misconfigured),
        ("[]", Misconfigured),
        ("[" * 100_000, Misconfigured),
        ('{"schema": "fencepost.status/1"}', Misconfigured),
        ('{"schema": "fencepost.plan/2", "basis": {}}', Misconfigured),
        ('{"schema": "fencepost.plan/1", "changes": []}', Misconfigured),
        ('{"schema": "fencepost.plan/1", "basis": {}}', Refused),
        ('{"schema": 1}', Misconfigured),
    ],
)
def test_what_is_no_saved_plan_is_refused(text: str, error: type[Exception], tmp_path: Path) -> None:
    """In words, with the line that makes one."""
    path = tmp_path / "p.json"
    path.write_text(text)
    with pytest.raises(error) as caught:
        load(path)
    assert "fencepost plan --save" in caught.value.hint  # type: ignore[attr-defined]


def test_however_deep_it_is_nested_it_is_refused(tmp_path: Path) -> None:
    """Just below the depth that can't be read there is one that can't be sealed."""
    path = tmp_path / "p.json"
    for depth in range(850, 1000):
        path.write_text('{"schema": "fencepost.plan/1", "basis": ' + "[" * depth + "]" * depth + "}")
        with pytest.raises((Refused, Misconfigured)):
            load(path)


def test_what_never_ends_is_read_no_further_than_a_plan_may_be_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device, or a pipe, has no size to look at beforehand."""
    monkeypatch.setattr(saved_plan, "SIZE_MOST", 1000)
    with pytest.raises(Misconfigured, match="too large"):
        load(Path("/dev/zero"))


def test_every_byte_counts(saved: Path) -> None:
    """A digit that is another makes no other plan."""
    text = saved.read_text()
    for at, letter in enumerate(text):
        if letter.isdigit():
            saved.write_text(text[:at] + str((int(letter) + 1) % 10) + text[at + 1 :])
            with pytest.raises((Refused, Misconfigured)):
                load(saved)


def test_an_older_basis_that_is_sealed_right_is_another_versions(saved: Path) -> None:
    """A version that knew less, or more, isn't guessed at."""
    body = json.loads(saved.read_text())
    body.pop("seal")
    body["basis"].pop("pools")
    saved.write_text(json.dumps(body | {"seal": saved_plan.seal(body)}))
    with pytest.raises(Misconfigured, match="another version"):
        load(saved)


def test_other_files_are_left_alone(saved: Path, tmp_path: Path) -> None:
    """A slip of the hand costs no region.toml; an older plan is replaced."""
    other = tmp_path / "region.toml"
    other.write_text("[region]\n")
    with pytest.raises(Refused, match="no saved plan"):
        write(other, found(), document(found()), by="ops")
    assert other.read_text() == "[region]\n"
    write(saved, found(), document(found()), by="again")
    assert load(saved).by == "again"
    with pytest.raises(Misconfigured, match="can't be written"):
        write(tmp_path / "no" / "p.json", found(), document(found()), by="ops")
