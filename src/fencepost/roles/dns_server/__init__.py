"""The embedded authoritative DNS server: UDP and TCP, RFC 2136 updates with TSIG, transfers, NOTIFY.

For trying out and for one host: unsigned, and not for the open internet. It is an ordinary primary to everyone else, so
that a BIND, Knot or PowerDNS, or secondaries that follow it, take its place by a setting. No well-kept server with all
this installs from PyPI; hence ours, in a dozen small modules:

    server    sockets, connections, start and stop       handler   message in, answer or later work out
    request   header, EDNS, where sections are           wire      names, records, serials
    lookup    what the domain says                       answers   the same as wire, kept and patched
    updates   RFC 2136                                   signatures  RFC 8945
    transfers RFC 5936, RFC 1995                         notices   RFC 1996
    contents  the names, in memory                       file      the same on disk, and the journal
    weights   which addresses a weighted answer shows    counters  what happened, in numbers
"""

from .counters import Counters
from .server import DnsServer, run
from .settings import DnsServerSettings

__all__ = ["Counters", "DnsServer", "DnsServerSettings", "run"]
