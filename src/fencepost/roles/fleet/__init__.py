"""The fleet's processes: agents on hosts, managers of their leases and of their network state, and their wire."""
