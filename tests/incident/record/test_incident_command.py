"""``fencepost incident`` as a person calls it: what it prints, what it writes, how it ends."""

import asyncio
import json
import time
from pathlib import Path

import msgspec
from called import call
from histories import NOON, bad_noon

from fencepost import assembly
from fencepost.incident.record.reading import read_file, shipped
from fencepost.incident.record.record import Record
from fencepost.settings import load
from fencepost.settings.initial import INITIAL

OCTOBER = "aws-2025-10-19"


def region_with_history(folder: Path) -> Path:
    """A region.toml whose store holds a bad noon, an hour ago; nothing runs."""
    config = folder / "region.toml"
    config.write_text(INITIAL.replace("5300", "1").replace("5301", "2"))
    region = load(str(config), {})
    assembly.load_configuration(region)
    assembly.make_tsig_key(region)
    shift = time.time_ns() - NOON - 3600 * 1_000_000_000

    async def put() -> None:
        store = assembly.open_store(region)
        await store.note([msgspec.structs.replace(row, at=row.at + shift) for row in bad_noon()])
        await store.close()

    asyncio.run(put())
    return config


def test_a_region_that_is_down_is_recorded_from_its_history(tmp_path: Path) -> None:
    """The store is enough; what is written is found beside region.toml, listed, shown, and never overwritten."""
    region_with_history(tmp_path)
    (tmp_path / "incidents").mkdir()
    done = call("incident", "record", "--last", "2h", "--out", "incidents", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "incidents").iterdir()
    made = read_file(path)
    assert done.stdout.startswith(made.id)
    assert [each.name for each in made.timeline.phases][:2] == ["targets-out", "targets-out-dead-kept"]
    assert [each.by for each in made.mitigations] == ["ada"]
    again = call("incident", "record", "--last", "2h", "--out", "incidents", cwd=tmp_path)
    assert again.returncode == 1
    assert "is there already" in again.stderr
    listed = call("incident", "list", "--tag", "journal", "--json", cwd=tmp_path)
    assert [each["id"] for each in json.loads(listed.stdout)["incidents"]] == [made.id]
    shown = call("incident", "show", made.id, cwd=tmp_path)
    assert "dns" in shown.stdout.partition("\nrelated\n")[2]
    assert f"  {OCTOBER}" in shown.stdout


def test_a_folder_that_is_not_there_yet_is_made(tmp_path: Path) -> None:
    """It wrote a file called "incidents", which `incident list` then silently lacked."""
    region_with_history(tmp_path)
    done = call("incident", "record", "--last", "2h", "--out", "incidents", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "incidents").iterdir()
    assert path.suffix == ".json"
    listed = call("incident", "list", "--tag", "journal", "--json", cwd=tmp_path)
    assert [each["id"] for each in json.loads(listed.stdout)["incidents"]] == [path.stem]
    (tmp_path / "notes.txt").write_text("mine")
    refused = call("incident", "record", "--last", "2h", "--out", "notes.txt", cwd=tmp_path)
    assert (refused.returncode, "is a file and no folder" in refused.stderr) == (1, True)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_related_record_is_one_line_with_all_its_reasons() -> None:
    """One record was listed three times: as named, by its cause, and by a component."""
    shown = call("incident", "show", OCTOBER)
    related = shown.stdout.partition("\nrelated\n")[2].partition("\nsources\n")[0].splitlines()
    ids = [line.split()[0] for line in related]
    assert len(ids) == len(set(ids)) > 2
    first = next(line for line in related if "named: " in line)
    assert "; cause: " in first
    assert "; component: " in first


def test_a_quiet_hour_is_no_incident(tmp_path: Path) -> None:
    """Exit 1, nothing written; with --json the refusal is the document."""
    region_with_history(tmp_path)
    done = call("incident", "record", "--last", "1m", "--out", "x.json", "--json", cwd=tmp_path)
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["kind"] == "refused"
    assert not (tmp_path / "x.json").exists()


def test_a_replay_is_recorded(tmp_path: Path) -> None:
    """Written to a file or printed, it is the same record, and is related to the incident that it replays."""
    words = ("incident", "record", "--replay", "--hosts", "300")
    done = call(*words, "--out", "o.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    printed = call(*words, OCTOBER, "--json", cwd=tmp_path)
    assert msgspec.convert(json.loads(printed.stdout), Record) == read_file(tmp_path / "o.json")
    shown = json.loads(call("incident", "show", "o.json", "--json", cwd=tmp_path).stdout)
    assert (OCTOBER, "named") in {(each["id"], each["because"]) for each in shown["related"]}


def test_options_of_a_replay_are_refused_without_one(tmp_path: Path) -> None:
    """They would be ignored silently, and the record be of something else."""
    done = call("incident", "record", "--guards", "production", cwd=tmp_path)
    assert done.returncode == 2
    assert "add --replay" in done.stderr
    done = call("incident", "record", "--replay", "--guards", "fense", cwd=tmp_path)
    assert done.returncode == 2
    assert '"fence"' in done.stderr


def test_a_bad_record_is_named_and_the_others_are_listed(tmp_path: Path) -> None:
    """Exit 2, with file and place; the good ones all the same."""
    (tmp_path / "bad.json").write_text('{"schema": "fencepost.incident/1", "idd": 1}')
    done = call("incident", "list", "--folder", ".", cwd=tmp_path)
    assert done.returncode == 2
    assert all(each.record.id in done.stdout for each in shipped())
    assert 'bad.json: $: unknown key "idd"; did you mean "id"?' in done.stderr
    whole = json.loads(call("incident", "list", "--folder", ".", "--json", cwd=tmp_path).stdout)
    assert [each["where"] for each in whole["errors"]] == ["bad.json: $"]
    assert call("incident", "show", OCTOBER, "--folder", ".", cwd=tmp_path).returncode == 0
    shown = call("incident", "show", "./bad.json", cwd=tmp_path)
    assert (shown.returncode, shown.stdout) == (2, "")


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    """An id with the nearest one; a file; a folder that was named."""
    done = call("incident", "show", "aws-2025-10-91", cwd=tmp_path)
    assert done.returncode == 1
    assert f"fencepost incident show {OCTOBER}" in done.stderr
    assert call("incident", "show", "nowhere.json", cwd=tmp_path).returncode == 2
    assert call("incident", "list", "--folder", "nowhere", cwd=tmp_path).returncode == 2
    assert call("incident", "list", "--cause", "overlod", cwd=tmp_path).returncode == 1
