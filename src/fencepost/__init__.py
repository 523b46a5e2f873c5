"""fencepost: a regional control plane that can't empty its own front door."""

__version__ = "0.1.0"
