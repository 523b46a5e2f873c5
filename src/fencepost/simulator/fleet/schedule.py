"""What goes wrong with a fleet, and what people do to it: kinds of upset, drawn as the region's are."""

from fencepost.core.instant import MINUTE, SECOND
from fencepost.simulator.schedule import Kind

HOUR_MOST = 60 * MINUTE

FLEET_KINDS: dict[str, Kind] = {
    "manager-crash": Kind("a manager dies and is started anew, under another name", 30),
    "manager-pause": Kind("a manager stands still, up to ten minutes", 15, SECOND, 10 * MINUTE),
    "manager-cut-off": Kind("a manager can't reach the store", 8, SECOND, 10 * MINUTE),
    "clock-skew": Kind("a clock runs up to 1 % fast or slow from now on", 20),
    "wall-clock": Kind("a wall clock jumps by an hour (etcd #12291): nothing reads it", 6),
    "fleet-store-away": Kind("the store doesn't answer, up to hours", 4, SECOND, 3 * HOUR_MOST),
    "fleet-store-wiped": Kind("the store is lost; a new one knows nothing", 2),
    "fleet-store-restored": Kind("the store is put back from an older copy, in a new life", 2),
    "commit-answer-lost": Kind("a commit takes effect, and its answer is lost", 60),
    "commit-lost": Kind("a commit is lost", 40),
    "commit-late": Kind("a commit is given up, and takes effect later", 30, SECOND, MINUTE),
    "network-bad": Kind("messages are lost, late, repeated and overtaken", 8, 5 * SECOND, 8 * MINUTE),
    "host-reboot": Kind("a host starts anew: nothing runs on it, its clock begins again", 15),
    "host-agent-restart": Kind("an agent starts anew; what it started goes on", 25),
    "host-memory-lost": Kind("a host's disk is empty: another incarnation", 6),
    "host-partition": Kind("nothing reaches a host", 15, 2 * SECOND, 12 * MINUTE),
    "host-dies": Kind("a host is off, for good or for a while", 8, MINUTE, 20 * MINUTE),
    "hosts-silent": Kind("every host is cut off at once (kubernetes #24597)", 2, 2 * SECOND, 5 * MINUTE),
    "host-slow": Kind("a host takes long to stop what it runs", 8, 5 * SECOND, 30 * SECOND),
    "attempt-ends": Kind("an attempt ends by itself", 20),
    "launch": Kind("somebody launches instances", 30),
    "terminate": Kind("somebody terminates an instance", 30),
    "host-drain": Kind("a person moves everything away from a host, and takes that back", 10, MINUTE, 10 * MINUTE),
    "host-cordon": Kind("a person lets nothing new be placed on a host, for a while", 6, MINUTE, 10 * MINUTE),
    "take-over": Kind("a shard's owner is killed again and again (etcd #9888)", 2, MINUTE, 6 * MINUTE),
}
"""Every kind of upset of a fleet."""
