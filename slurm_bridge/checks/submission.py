"""Judge of what handing pods in needs, and administering queues: callers with tokens."""

from collections.abc import Iterator

from slurm_bridge.checks.facts import Expectations, Facts
from slurm_bridge.checks.findings import Remark, failure, ok


def reviewed(facts: Facts, wanted: Expectations) -> Iterator[Remark]:
    """Without it every caller is told that the bridge is misconfigured."""
    if not wanted.reviews:
        yield ok("nobody hands in tokens: web.submission and web.administration are off")
    elif facts.reviews:
        yield ok("may ask whose a caller's token is")
    else:
        yield failure("not allowed: create tokenreviews.authentication.k8s.io")
