"""`make bench-cpu`: the daemon's processor time per pod without families of hooks, with each of them, and with all.

The chains take turns, each round in another order, so that a noisy machine hurts all alike; what counts is how much
more than the plain chain of its round a chain takes, and the median of that. Writes build/bench-cpu.json; fails when
all families together take more than the goal allows.
"""

import argparse
import dataclasses
import json
import pathlib
import sys
from collections.abc import Sequence

from clusterbench import figures

from cpubench import costs, turns
from cpubench.chains import CHAINS, EVERY, PLAIN
from cpubench.turns import Turn

PROJECT = pathlib.Path(__file__).resolve().parents[3]
OUTPUT = PROJECT / "build" / "bench-cpu.json"
FOLDER = PROJECT / "build" / "bench-cpu"


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="cpubench", description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1000, help="nodes of the cluster (default %(default)s)")
    parser.add_argument("--pods", type=int, default=1500, help="pods of a turn (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each chain (default %(default)s)")
    parser.add_argument("--only", nargs="+", choices=list(CHAINS), default=list(CHAINS), help="chains")
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    """Measure, print, write, judge."""
    given = _arguments(argv)
    names = list(dict.fromkeys([PLAIN, *given.only]))
    played: list[Turn] = []
    for round_ in range(given.rounds):
        for name in figures.order(names, round_):
            played.append(turns.play(name, round_, given.nodes, given.pods, FOLDER / name))
            print(f"round {round_ + 1}: {played[-1]}", flush=True)
    found = costs.costs(played, PLAIN)
    print(costs.table(found), flush=True)
    OUTPUT.parent.mkdir(exist_ok=True)
    document = {
        "turns": [dataclasses.asdict(one) for one in played],
        "costs": [dataclasses.asdict(one) for one in found],
    }
    OUTPUT.write_text(json.dumps(document, indent=2) + "\n")
    return int(any(one.who == EVERY and one.more > costs.GOAL for one in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
