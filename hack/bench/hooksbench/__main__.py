"""`make bench-hooks`: how many workloads per second the hooks plan, and how that grows with the cluster.

Contestants take turns on one made-up cluster, each round in another order, so that a noisy machine hurts all alike.
Every workload that is placed changes the cluster. Writes build/bench-hooks.json and a plot; fails under the goals.
"""

import argparse
import gc
import itertools
import json
import pathlib
import sys
from collections.abc import Iterator, Sequence

from hooksbench import figures, plot, report, workloads
from hooksbench.contestants import CONTESTANTS, FRAMEWORK
from hooksbench.figures import Turn
from hooksbench.passes import Passes
from hooksbench.world import World

PROJECT = pathlib.Path(__file__).resolve().parents[3]
OUTPUT = PROJECT / "build" / "bench-hooks.json"

#: What `--docs` writes again: the figures of one machine.
PAGE = PROJECT / "docs" / "performance.md"
DRAWING = PROJECT / "docs" / "hooks-speed.svg"

#: Workloads before each turn that are not counted: caches are filled by them, as in a daemon that has been running.
WARM_UP = 10

#: What `--quick` changes: enough to see that a goal is missed by far.
QUICK = {"sizes": [1000, figures.GOAL_NODES], "rounds": 2, "workloads": 50}


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="hooksbench", description=__doc__.splitlines()[0])
    sizes = [100, 1000, 5000, 20_000]
    parser.add_argument("--sizes", type=int, nargs="+", default=sizes, help="nodes of the clusters")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each contestant (default %(default)s)")
    parser.add_argument("--workloads", type=int, default=150, help="workloads in a turn (default %(default)s)")
    parser.add_argument("--only", nargs="+", choices=list(CONTESTANTS), default=list(CONTESTANTS), help="contestants")
    parser.add_argument("--shapes", nargs="+", choices=list(workloads.SHAPES), default=list(workloads.SHAPES))
    parser.add_argument("--tolerance", type=float, default=0.0, help="part of a goal that may be missing, 0 to 1")
    parser.add_argument("--plot", type=pathlib.Path, default=OUTPUT.with_suffix(".svg"), help="where the plot goes")
    parser.add_argument("--docs", action="store_true", help="write figures and plot into docs/ as well")
    parser.add_argument("--quick", action="store_true", help="fewer sizes, rounds and workloads, for a look")
    given = parser.parse_args(argv)
    if given.quick:
        vars(given).update(QUICK)
    return given


def main(argv: Sequence[str]) -> int:
    """Measure, print, write, judge."""
    given = _arguments(argv)
    turns = [turn for size in given.sizes for turn in _played(size, given)]
    rows = figures.rows(turns, FRAMEWORK.name)
    judged = {name for name, one in CONTESTANTS.items() if one.judged}
    verdicts = figures.verdicts(rows, judged, given.tolerance)
    print(report.table(rows), report.parts(rows), report.judgement(verdicts), sep="\n\n", flush=True)
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_text(json.dumps(report.document(turns, rows, verdicts), indent=2) + "\n")
    given.plot.write_text(plot.draw(rows), encoding="utf-8")
    if given.docs:
        DRAWING.write_text(plot.draw(rows), encoding="utf-8")
        PAGE.write_text(report.replaced(PAGE.read_text(encoding="utf-8"), report.markdown(rows)), encoding="utf-8")
    return 0 if all(one.met for one in verdicts) else 1


def _played(size: int, given: argparse.Namespace) -> Iterator[Turn]:
    world, numbers = World(size), itertools.count(0, WARM_UP + given.workloads)
    passes = {name: Passes(CONTESTANTS[name], world) for name in given.only}
    try:
        for round_, shapes in itertools.product(range(given.rounds), given.shapes):
            for name in figures.order(given.only, round_):
                turn = _turn(passes[name], name, shapes, (size, round_, next(numbers), given.workloads))
                print(f"round {round_ + 1}: {report.line(turn)}", flush=True)
                yield turn
    finally:
        for one in passes.values():
            one.close()


def _turn(passes: Passes, name: str, shapes: str, where: tuple[int, int, int, int]) -> Turn:
    """No two turns have workloads of one name, or of one shape where they are to differ."""
    nodes, round_, first, count = where
    made = workloads.SHAPES[shapes](first, WARM_UP + count)
    passes.play(made[:WARM_UP])
    gc.collect()
    spent = passes.play(made[WARM_UP:])
    return Turn(
        who=name,
        shapes=shapes,
        nodes=nodes,
        round=round_,
        workloads=count,
        seconds=spent.seconds,
        cpu_seconds=spent.cpu_seconds,
        waits=spent.waits,
        inside=spent.inside,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
