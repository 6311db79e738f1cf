"""The check for the submission API and the admin API: callers are identified by their tokens."""

from collections.abc import Iterator

from slurm_bridge.checks.facts import CheckFacts, Expectations
from slurm_bridge.checks.findings import Remark, failure, ok


def reviewed(facts: CheckFacts, wanted: Expectations) -> Iterator[Remark]:
    """Without this right every caller is told that the bridge is misconfigured."""
    if not wanted.reviews:
        yield ok("not needed: web.submission and web.administration are off")
    elif facts.reviews:
        yield ok("may review callers' tokens")
    else:
        yield failure("not allowed: create tokenreviews.authentication.k8s.io")
