"""`make bench`: how many pods per second each contestant takes from creation to their nodes, and what that costs.

The contestants take turns on one cluster, each round in another order, so that a noisy machine hurts all alike; what
counts is the ratio within a round, and its median. Writes build/bench.json; a run of three rounds or more adds its
figures to docs/performance.tsv, of which `make docs` makes the table and the picture of docs/performance.md.
"""

import argparse
import dataclasses
import datetime as dt
import json
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence

import bench_history
import bench_page
from clusterbench import adapters, contestants, ends, figures, gangs, idle_cost, large, report, testbed, turns
from slurm_bridge.slurm.wire import WIRES

PROJECT = pathlib.Path(__file__).resolve().parents[3]
OUTPUT = PROJECT / "build" / "bench.json"
FOLDER = PROJECT / "build" / "bench"

#: The size of the cluster of which the page on performance shows all.
_USUAL = 1000


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="clusterbench", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--nodes", type=int, default=_USUAL, help="how large the cluster has to be (default %(default)s)"
    )
    parser.add_argument("--pods", type=int, default=2000, help="workloads of one pod in a turn; 0 leaves that out")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each contestant (default %(default)s)")
    parser.add_argument(
        "--gang", type=int, default=512, help="pods of the gang; 0 leaves that out (default %(default)s)"
    )
    parser.add_argument("--waiting", type=int, default=10_000, help="workloads that wait; 0 leaves that out")
    parser.add_argument(
        "--quiet-seconds", type=float, default=60, help="how long the waiting or running ones are watched"
    )
    parser.add_argument("--ends", type=int, default=300, help="pods that end at once; 0 leaves that out")
    parser.add_argument("--running", type=int, default=3000, help="pods that run then (default %(default)s)")
    parser.add_argument(
        "--large", type=int, default=0, help="pods that run while more wait, on a full cluster (default: left out)"
    )
    parser.add_argument("--no-calls", dest="calls", action="store_false", help="leave out single calls of the adapters")
    parser.add_argument(
        "--only", nargs="+", choices=contestants.CONTESTANTS, default=list(contestants.CONTESTANTS), help="contestants"
    )
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    """Measure, print, write."""
    given = _arguments(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that a cluster of our own is stopped
    with testbed.opened(given.nodes, next(iter(WIRES))) as bed:
        for part in _PARTS:
            part(bed, given)
    return 0


def _throughput(bed: testbed.Bed, given: argparse.Namespace) -> None:
    if played := _rounds(bed, given):
        print(report.table(played), end="\n\n", flush=True)
        _store(report.document(bed.config, played))
        part = bench_page.PART if given.nodes <= _USUAL else bench_page.LARGER
        _keep(bed, given, (part, given.pods, given.rounds), report.values(played))


def _gangs(bed: testbed.Bed, given: argparse.Namespace) -> None:
    if given.gang:
        played = gangs.measure(bed, given.gang, given.rounds, FOLDER)
        print(gangs.table(played), end="\n\n", flush=True)
        _store(gangs.document(played))
        _keep(bed, given, ("a gang", given.gang, given.rounds), gangs.values(played))


def _calls(bed: testbed.Bed, given: argparse.Namespace) -> None:
    if given.calls:
        rows = list(adapters.Bench(bed.env).rows())
        print(adapters.table(rows), end="\n\n", flush=True)
        _store(adapters.document(rows))


def _waiting(bed: testbed.Bed, given: argparse.Namespace) -> None:
    if given.waiting:
        quiet = idle_cost.measure(bed, given.waiting, given.quiet_seconds, FOLDER)
        print(quiet)
        _store({"waiting": quiet.document()})
        _keep(bed, given, ("waiting workloads", given.waiting, 1), quiet.values(contestants.OURS.name))


def _ends(bed: testbed.Bed, given: argparse.Namespace) -> None:
    if given.ends:
        ended = ends.measure(bed, given.running, given.ends, given.quiet_seconds, FOLDER)
        print(ended)
        _store(ended.document())
        _keep(bed, given, (f"{given.ends} ends", given.running, 1), ended.values())


def _large(bed: testbed.Bed, given: argparse.Namespace) -> None:
    if given.large:
        found = large.measure(bed, given.large, given.quiet_seconds, FOLDER)
        print(found)
        _store({"large": dataclasses.asdict(found)})
        _keep(bed, given, ("a full cluster", found.running + found.waiting, 1), found.values())


_PARTS = (_throughput, _gangs, _calls, _ends, _waiting, _large)


def _store(measured: Mapping[str, object]) -> None:
    """At once, so that an interruption costs little; what is left out this time stays as it was measured before."""
    stored = json.loads(OUTPUT.read_text()) if OUTPUT.exists() else {}
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_text(json.dumps({**stored, **measured}, indent=2) + "\n")


def _keep(
    bed: testbed.Bed, given: argparse.Namespace, part: tuple[str, int, int], found: Iterable[bench_history.Values]
) -> None:
    """In the history, unless there were too few rounds. A part has a name, its workloads, and rounds of its own."""
    if given.rounds < bench_history.ROUNDS:
        return
    name, workloads, rounds = part
    run = bench_history.Run(
        when=dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%MZ"),
        commit=_commit(),
        processors=os.cpu_count() or 1,
        part=name,
        nodes=bed.config.nodes,
        workloads=workloads,
        rounds=rounds,
    )
    bench_history.add(run, found)


def _commit() -> str:
    """With a + where the program was changed since."""
    head = _git("rev-parse", "--short=8", "HEAD")
    return f"{head}+" if _git("status", "--porcelain", "--", "slurm_bridge") else head


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=PROJECT, check=True, capture_output=True, text=True).stdout.strip()


def _rounds(bed: testbed.Bed, given: argparse.Namespace) -> list[figures.Turn]:
    played: list[figures.Turn] = []
    for round_ in range(given.rounds if given.pods else 0):
        for name in figures.order(given.only, round_):
            turn = turns.play(bed, contestants.CONTESTANTS[name], given.pods, FOLDER)
            print(f"round {round_ + 1}: {report.line(turn)}", flush=True)
            played.append(turn)
    return played


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
