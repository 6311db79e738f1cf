"""`make bench-hooks`: how many workloads per second the hooks plan, and how that grows with the cluster.

Contestants take turns on one made-up cluster, each round in another order, so that a noisy machine hurts all alike.
Every workload that is placed changes the cluster. Beside them the queue core: its passes over many applications, and
how fast it admits. Writes build/bench-hooks.json and plots; fails under the goals.
"""

import argparse
import dataclasses
import functools
import gc
import itertools
import json
import pathlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence

from hooksbench import admission, figures, gangs, plot, queue_report, queues, report, workloads
from hooksbench.admission import Admitted
from hooksbench.contestants import CONTESTANTS, FRAMEWORK, Contestant
from hooksbench.figures import Row, Turn
from hooksbench.passes import Passes
from hooksbench.queues import Timing
from hooksbench.workloads import Asked
from hooksbench.world import World
from slurm_bridge.families.yunikorn.queues.settings import SortPolicy
from slurm_bridge.runtime import garbage

PROJECT = pathlib.Path(__file__).resolve().parents[3]
OUTPUT = PROJECT / "build" / "bench-hooks.json"

#: What `--docs` writes again: the figures of one machine.
PAGE = PROJECT / "docs" / "benchmarks.md"
DRAWING = PROJECT / "docs" / "hooks-speed.svg"
GANGS_DRAWING = PROJECT / "docs" / "hooks-speed-gangs.svg"

#: Workloads before each turn that are not counted: caches are filled by them, as in a daemon that has been running.
WARM_UP = 10

#: What `--quick` changes: enough to see that a goal is missed by far.
QUICK = {"sizes": [1000, figures.GOAL_NODES], "rounds": 2, "workloads": 50}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Contestants that play together. A turn of the others has one of so many workloads, as a gang is many pods."""

    world: Callable[[int], World]
    contestants: Mapping[str, Contestant]
    shapes: Mapping[str, Callable[[int, int], tuple[Asked, ...]]]
    one_of: int = 1


PODS = Part(world=World, contestants=CONTESTANTS, shapes=workloads.SHAPES)
GANGS = Part(world=gangs.Racks, contestants=gangs.CONTESTANTS, shapes=gangs.SHAPES, one_of=5)
PARTS: Mapping[str, Part | None] = {"pods": PODS, "gangs": GANGS, "queues": None}
NAMES = list(dict.fromkeys([*CONTESTANTS, *gangs.CONTESTANTS]))
#: The others play only where they are named: no goal is set for them.
USUAL = list(dict.fromkeys([*(name for name, one in CONTESTANTS.items() if one.judged), *gangs.CONTESTANTS]))


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="hooksbench", description=__doc__.splitlines()[0])
    sizes = [100, 1000, 5000, 20_000]
    parser.add_argument("--sizes", type=int, nargs="+", default=sizes, help="nodes of the clusters")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each contestant (default %(default)s)")
    parser.add_argument("--workloads", type=int, default=150, help="workloads in a turn (default %(default)s)")
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS), help="what is measured")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=USUAL, help="contestants")
    parser.add_argument("--shapes", nargs="+", choices=list(workloads.SHAPES), default=list(workloads.SHAPES))
    parser.add_argument("--tolerance", type=float, default=0.0, help="part of a goal that may be missing, 0 to 1")
    parser.add_argument("--plot", type=pathlib.Path, default=OUTPUT.with_suffix(".svg"), help="where the plot goes")
    parser.add_argument("--docs", action="store_true", help="write figures and plot into docs/ as well")
    parser.add_argument("--quick", action="store_true", help="fewer sizes, rounds and workloads, for a look")
    given = parser.parse_args(argv)
    if given.docs and set(given.parts) != set(PARTS):
        parser.error("--docs writes the figures of all parts; leave --parts out")
    if given.quick:
        vars(given).update(QUICK)
    return given


def main(argv: Sequence[str]) -> int:
    """Measure, print, write, judge."""
    given = _arguments(argv)
    garbage.collect_seldom()  # as in the daemon
    parts = [part for name in given.parts if (part := PARTS[name]) is not None]
    turns = [turn for part in parts for size in given.sizes for turn in _played(part, size, given)]
    rows = figures.rows(turns, FRAMEWORK.name)
    judged = {name for name, one in CONTESTANTS.items() if one.judged}
    verdicts = figures.verdicts(rows, judged, given.tolerance)
    timings, admitted = _queues(given) if "queues" in given.parts else ([], [])
    told = [report.table(rows), report.parts(rows)] if rows else []
    told += [queue_report.table(timings, admitted)] if timings else []
    told += [report.judgement(verdicts), queue_report.judgement(timings, given.tolerance)]
    print(*filter(None, told), sep="\n\n", flush=True)
    OUTPUT.parent.mkdir(exist_ok=True)
    document = {**report.document(turns, rows, verdicts), "queues": queue_report.document(timings, admitted)}
    OUTPUT.write_text(json.dumps(document, indent=2) + "\n")
    _draw(rows, given.plot, given.plot.with_stem(f"{given.plot.stem}-gangs"))
    if given.docs:
        _draw(rows, DRAWING, GANGS_DRAWING)
        measured = f"{report.markdown(rows)}\n\n{queue_report.markdown(timings, admitted)}"
        PAGE.write_text(report.replaced(PAGE.read_text(encoding="utf-8"), measured), encoding="utf-8")
    met = all(one.met for one in verdicts) and not queue_report.missed(timings, given.tolerance)
    return 0 if met else 1


def _draw(rows: Sequence[Row], pods: pathlib.Path, others: pathlib.Path) -> None:
    """Two drawings, because gangs are compared with gangs."""
    for part, path in ((PODS, pods), (GANGS, others)):
        mine = [row for row in rows if row.shapes in part.shapes]
        if mine:
            path.write_text(plot.draw(mine), encoding="utf-8")


def _queues(given: argparse.Namespace) -> tuple[list[Timing], list[Admitted]]:
    """Passes for everything that can be short and every order of applications, and admissions."""
    sizes = given.sizes[:1] if given.quick else given.sizes
    timings = []
    for size, shortage, policy in itertools.product(sizes, queues.SHORTAGES, SortPolicy):
        timings.append(queues.measure(size, shortage, policy, given.rounds))
        print(queue_report.line(timings[-1]), flush=True)
    return timings, [one for size in sizes for one in admission.measure(size, given.workloads)]


def _played(part: Part, size: int, given: argparse.Namespace) -> Iterator[Turn]:
    names = [name for name in given.only if name in part.contestants]
    kinds = [kind for kind in part.shapes if kind.split()[-1] in given.shapes]
    world, count = part.world(size), given.workloads // part.one_of
    numbers = itertools.count(0, WARM_UP + count)
    passes = {name: Passes(part.contestants[name], world) for name in names}
    try:
        for round_, shapes in itertools.product(range(given.rounds), kinds):
            for name in figures.order(names, round_) if names else ():
                # No two turns have workloads of one name, or of one shape where they are to differ.
                made = part.shapes[shapes](next(numbers), WARM_UP + count)
                played = functools.partial(Turn, who=name, shapes=shapes, nodes=size, round=round_)
                turn = _turn(passes[name], made, played)
                print(f"round {round_ + 1}: {report.line(turn)}", flush=True)
                yield turn
    finally:
        for one in passes.values():
            one.close()


def _turn(passes: Passes, made: Sequence[Asked], turn: Callable[..., Turn]) -> Turn:
    """Those that warm up are not counted."""
    passes.play(made[:WARM_UP])
    gc.collect()
    spent = passes.play(made[WARM_UP:])
    return turn(
        workloads=len(made) - WARM_UP,
        seconds=spent.seconds,
        cpu_seconds=spent.cpu_seconds,
        waits=spent.waits,
        inside=spent.inside,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
