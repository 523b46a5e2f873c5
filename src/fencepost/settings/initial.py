"""The file that `fencepost init` writes: the smallest useful one, with what to change first."""

INITIAL = """\
# A region: endpoints whose DNS records fencepost keeps true to what can serve. See  fencepost check
[region]
name = "eu-1"                        # written in every marker; no two regions share it

[dns]
provider = "embedded"                # embedded: a server on this machine, to try things out
domain   = "example.com"             # the DNS zone that the endpoints are in
# provider = "rfc2136"               # BIND, Knot, PowerDNS and others that take signed updates
# server   = "192.0.2.53:53"
# key      = { file = "tsig.key" }   # tsig-keygen fencepost > tsig.key; chmod 600 tsig.key
# listen   = "127.0.0.1:5300"        # embedded: where it answers; a second region on this machine needs another

[api]
listen = "127.0.0.1:5301"            # status and metrics; a second region on this machine needs another

[pool.api]
probe = "http://:8080/healthz"       # asked of every target, from every zone; 200 to 299 is healthy

[pool.api.targets]                   # failure zone = addresses; three zones or more, so that one may be wrong
a = ["192.0.2.10", "192.0.2.11"]
b = ["198.51.100.10", "198.51.100.11"]
c = ["203.0.113.10", "203.0.113.11"]

[[endpoint]]
name = "api.example.com"
pool = "api"

# Targets that fencepost itself launches, on hosts that run  fencepost run agent  (docs/operating/fleet.md):
# [fleet]                            # an empty heading will do
# command = ["/usr/local/bin/web", "--listen", "{address}:{port}"]
# [pool.web]
# probe = "http://:8080/healthz"
# [pool.web.launch]                  # instead of targets; then  fencepost fleet launch web
"""
