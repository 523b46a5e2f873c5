"""A strict stand-in for Amazon Route 53: the real REST API, on loopback, for tests and for trying out.

It refuses what Route 53 refuses, in its words: a DELETE must name exactly what stands, a batch is done whole or not at
all, and limits are counted as Route 53 counts them. Other stand-ins are kinder (moto accepts a stale DELETE and keeps
half of a refused batch), and a kind one can't show that a fenced write holds.

Nothing here was ever held against Route 53 itself. Rules are from AWS's documents, texts from public reports; each
module names its own. ``docs/concepts/route53-stand-in.md`` says what is known, supposed and left out.

In a test, in a thread of its own on a free port, without throttling:

    from fencepost.dev.route53 import Fault, Route53Settings, running

    with running(Route53Settings(requests_per_s=None, zones=("example.test",))) as server:
        zone_id = server.create_zone("example.test")  # the id; made only if it isn't there
        client = boto3.client("route53", endpoint_url=server.url, region_name="us-east-1",
                              aws_access_key_id="any", aws_secret_access_key="any")
        server.faults.add(Fault("lost", action="ChangeResourceRecordSets", times=1))
        server.calls                                  # the actions asked for so far, in order

In a running event loop: ``server = Route53Server(settings)``, ``await server.start()``, ``await server.stop()``.
"""

from fencepost.dev.route53.beside import main_of
from fencepost.dev.route53.server import Route53Server, running
from fencepost.dev.route53.settings import Fault, Route53Settings

__all__ = ["Fault", "Route53Server", "Route53Settings", "main_of", "running"]
