"""What can serve: leases on hosts, where instances are placed, and the network state that they need.

    host --checked--> lease --> placement --> network state --> readiness (in fencepost.core.traffic)

A *manager* owns a shard of the hosts and checks each of them (:mod:`~fencepost.core.capacity.host_lease`; whole, for
whoever drives it: :mod:`~fencepost.core.capacity.lease_manager`); a *host* has
an agent that obeys only the newest grant and a fresh stamp of its own clock (:mod:`~fencepost.core.capacity.host`).
Both speak the messages of :mod:`~fencepost.core.capacity.messages`; what must outlive them is in the rows of
:mod:`~fencepost.core.capacity.rows`, written only by compare-and-set (:mod:`~fencepost.core.capacity.fleet_store`).
No rule rests on a wall clock, and none on how long a message takes.
"""
