"""`make bench-size`: the daemon at several sizes of the cluster, between pocket servers.

Two in five pods run, and the others wait for a partition that is down. Writes build/bench-size.json.
"""

import argparse
import dataclasses
import json
import pathlib
import sys
from collections.abc import Iterable, Sequence

from clusterbench import report

from sizebench import sizes
from sizebench.sizes import Found, Size

PROJECT = pathlib.Path(__file__).resolve().parents[3]
OUTPUT = PROJECT / "build" / "bench-size.json"
FOLDER = PROJECT / "build" / "bench-size"

#: Pods for each node: of these two in five run.
_PODS, _RUNNING = 10, 4


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="sizebench", description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[1000, 5000], help="sizes (default 1000 and 5000)")
    parser.add_argument(
        "--quiet-seconds", type=float, default=60, help="how long nothing changes (default %(default)s)"
    )
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    """Measure, print, write."""
    given = _arguments(argv)
    found: list[Found] = []
    for nodes in given.nodes:
        size = Size(nodes=nodes, running=_RUNNING * nodes, waiting=(_PODS - _RUNNING) * nodes)
        found.append(sizes.measure(size, given.quiet_seconds, FOLDER / str(nodes)))
        print(f"{nodes} nodes, {size.pods} pods: cold start {found[-1].start_seconds:.1f} s", flush=True)
    print(table(found))
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_text(json.dumps([dataclasses.asdict(one) for one in found], indent=2) + "\n")
    return 0


def table(found: Iterable[Found]) -> str:
    """A column for each size."""
    columns = [(f"{one.size.nodes} nodes", dict(one.figures())) for one in found]
    rows = [(what, *(report.cell(told[what]) for _, told in columns)) for what in columns[0][1]]
    heads = (f"{'of the daemon':<44}", *(f"{head:>14}" for head, _ in columns))
    return "\n".join(
        ["".join(heads), *("".join((f"{what:<44}", *(f"{cell:>14}" for cell in row))) for what, *row in rows)]
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
