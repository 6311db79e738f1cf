"""What the benchmark of large clusters says of its figures."""

import re

from sizebench import __main__ as command
from sizebench import sizes
from sizebench.sizes import Bound, Found, Size


def found(nodes: int) -> Found:
    """Ten times as many pods as nodes, of which four in ten run."""
    return Found(
        size=Size(nodes=nodes, running=4 * nodes, waiting=6 * nodes),
        filled=Bound(pods=4 * nodes, seconds=20.0, cpu=8.0),
        start_seconds=4.0,
        start_cpu=3.5,
        quiet_seconds=60.0,
        quiet_cpu=1.2,
        quiet_calls=180.0,
        memory_mib=300.0,
        burst=Bound(pods=sizes.BURST, seconds=10.0, cpu=2.5),
    )


def test_figures_are_per_pod_and_per_second() -> None:
    """CPU while nothing changes is a part of one processor."""
    told = dict(found(1000).figures())
    assert found(1000).size.pods == 10_000
    assert told["pods/s until those that run were bound"] == 200
    assert told["CPU ms per pod, until then"] == 2
    assert told["% of a processor while nothing changes"] == 2
    assert told["calls/s while nothing changes"] == 3
    assert told["CPU ms per pod, of 1000 more"] == 2.5


def test_each_size_has_a_column() -> None:
    """And each figure a row."""
    lines = command.table([found(1000), found(5000)]).splitlines()
    assert re.search(r"1000 nodes +5000 nodes$", lines[0])
    assert len(lines) == 1 + len(list(found(1000).figures()))
    assert re.search(r"^s of a cold start until it is ready +4\.00 +4\.00$", lines[3])
