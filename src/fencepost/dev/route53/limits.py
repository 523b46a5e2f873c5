"""How much Route 53 takes: numbers, each with where it is stated.

Developer Guide, "Quotas" (once "DNSLimitations"), unless said otherwise.
"""

REQUESTS_PER_S = 5
"""Requests a second an account; past it HTTP 400 ``Throttling``, "Rate exceeded"."""
BATCH_RECORDS_MOST = 1000
"""ResourceRecord elements in one batch; those of an UPSERT count twice (DNSControl #1114)."""
BATCH_CHARACTERS_MOST = 32_000
"""Characters in all Value elements of one batch; those of an UPSERT count twice (external-dns #515)."""
ZONE_RECORD_SETS_MOST = 10_000
"""Record sets in one hosted zone, unless raised on request."""
ZONES_MOST = 500
"""Hosted zones an account, unless raised on request."""
WEIGHT_MOST = 255
"""API reference, ResourceRecordSet: weights are 0 to 255."""
TTL_MOST_S = 2_147_483_647
"""API reference, ResourceRecordSet; RFC 2181 section 8."""
SET_IDENTIFIER_CHARACTERS_MOST = 128
"""API reference, ResourceRecordSet."""
SET_RECORDS_MOST = 400
"""Records in one record set: 400 (external-dns #2642). It was 100 (rancher #10253); a careful client stays there."""
VALUE_CHARACTERS_MOST = 4000
"""Characters in one Value (API reference, ResourceRecord)."""
SAME_NAME_SETS_MOST = 100
"""Weighted, latency… sets that share name and type."""
PAGE_RECORD_SETS_MOST = 300
"""Record sets on one page of ListResourceRecordSets, whatever ``maxitems`` asks (API reference)."""
PAGE_ZONES_MOST = 100
"""Hosted zones on one page (API reference, ListHostedZones)."""
BODY_BYTES_MOST = 1 << 20
"""What this stand-in reads of a request; ours, to keep a wrong client from filling memory."""
