"""The collapse of a fleet's leases, and the recovery from it: the admission that ships, against a service with a
knee."""
