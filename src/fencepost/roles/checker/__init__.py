"""The checker role: probes in, reports out (`role`), with what it needs around that."""

from fencepost.roles.checker.role import CheckedPool, CheckerRole, CheckerSettings, Prober, run
from fencepost.roles.checker.writer import ReportStore

__all__ = ["CheckedPool", "CheckerRole", "CheckerSettings", "Prober", "ReportStore", "run"]
