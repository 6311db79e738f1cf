"""What hooks tell of every node is logged at the finest level, and not even made above it."""

import io
from collections.abc import Iterator

import pytest

from slurm_bridge.daemon import hook_observer
from slurm_bridge.telemetry import logs


@pytest.mark.parametrize("verbosity", [0, 4, 7])
def test_nothing_is_made_where_nobody_reads_it(verbosity: int) -> None:
    """A line for each of 20 000 nodes would cost more than all else."""

    def made() -> Iterator[str]:
        pytest.fail("made")

    sink = io.StringIO()
    logs.configure(verbosity=verbosity, sink=sink)
    hook_observer.finest(made)
    assert sink.getvalue() == ""


def test_at_verbosity_10_each_node_has_its_line() -> None:
    """As users of kube-scheduler know them, braces and all."""
    sink = io.StringIO()
    logs.configure(verbosity=10, sink=sink)
    hook_observer.finest(lambda: iter(["ns/{pod} -> a: Least, Score: (3)", "ns/pod -> b: Least, Score: (4)"]))
    hook_observer.finest(lambda: iter(()))
    told = [line.split("Level 3")[1].strip() for line in sink.getvalue().splitlines()]
    assert told == ["ns/{pod} -> a: Least, Score: (3) {}", "ns/pod -> b: Least, Score: (4) {}", "nothing to tell {}"]
