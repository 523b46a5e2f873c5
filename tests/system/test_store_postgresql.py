"""A region on PostgreSQL whose primary dies and whose replica, which lagged, is promoted: a lost store, and no more."""

import signal
from pathlib import Path

from postgresql import postgresql, replica
from regions import RunningRegion
from test_words_outlive import all_keep, identity, identity_or_none, standing

from fencepost.assembly.places import write_secret
from fencepost.core.fence import Generation

API = "api.example.test"
FIRST, SECOND = "127.0.1.1", "127.0.2.1"
WHY = ("--yes", "--reason", "a test")


class Watched:
    """What callers see of an endpoint: it is never empty, and its generation never falls."""

    def __init__(self, region: RunningRegion) -> None:
        self.region = region
        self.newest = Generation()

    def shows(self, *out: str) -> bool:
        """Whether exactly these targets are out."""
        found, marker = self.region.addresses(API), self.region.marker(API)
        assert found, "never_empty"
        assert marker is not None
        assert marker.generation >= self.newest, "never_backward"
        self.newest = marker.generation
        return not set(found) & set(out) and len(found) == 6 - len(out)


def test_a_promoted_replica_that_lagged_takes_no_address_away(tmp_path: Path) -> None:
    """It has never heard of the last plan and of a drain: both come back, from DNS and from what enactors remember."""
    with postgresql() as primary, replica(primary) as second:
        region = RunningRegion(tmp_path, on="embedded+postgresql")
        dsn = primary.dsn(primary.database()).replace("host=127.0.0.1", "host=127.0.0.1,127.0.0.1")
        ports = f"port={primary.port},{second.port}"
        (tmp_path / "postgresql.dsn").unlink()
        write_secret(
            tmp_path / "postgresql.dsn",
            dsn.replace(f"port={primary.port}", ports) + " target_session_attrs=read-write connect_timeout=2",
        )
        with region:
            seen = Watched(region)
            region.until(lambda: seen.shows(), 20, "six addresses")
            region.fencepost("drain", FIRST, *WHY)
            region.until(lambda: seen.shows(FIRST), 20, "one is drained")
            second.wait_caught_up()
            second.lag()
            region.fencepost("drain", SECOND, *WHY)
            region.until(lambda: seen.shows(FIRST, SECOND), 20, "another one is")
            lost, last = identity(region), seen.newest
            region.until(lambda: len(standing(region)) == 2, 10, "both stand")
            both = {f"drain {FIRST}", f"drain {SECOND}"}
            region.until(lambda: all_keep(region, both), 10, "every enactor has seen them, or they may be forgotten")
            primary.stop(signal.SIGQUIT)
            second.promote()
            region.until(
                lambda: seen.shows(FIRST, SECOND) and identity_or_none(region) not in ("", lost), 30, "another store"
            )
            region.until(lambda: seen.shows(FIRST, SECOND) and set(standing(region)) == both, 30, "both stand again")
            region.fencepost("resume", FIRST, "--yes")
            region.until(lambda: seen.shows(SECOND), 30, "what is resumed comes back")
            assert seen.newest > last
            assert "counts as lost" in region.fencepost("history")
