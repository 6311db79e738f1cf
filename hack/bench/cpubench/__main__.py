"""`make bench-cpu`: the daemon's processor time per pod, without families of hooks, with each, and with all.

The chains take turns, each round in another order; what counts is what a chain costs beyond the plain one of its round,
and the median of that. Writes build/bench-cpu.json; fails above the goal.
"""

import argparse
import pathlib
import statistics
import sys
from collections.abc import Sequence

from clusterbench import figures

from cpubench import turns
from cpubench.chains import CHAINS, PLAIN
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
    given = _arguments(argv)
    played: list[Turn] = []
    for round_ in range(given.rounds):
        for name in figures.order(given.only, round_):
            turn = turns.play(name, given.nodes, given.pods, FOLDER / name.replace(" ", "-"))
            print(
                f"round {round_ + 1}: {name}: {turn.ms_per_pod:.2f} ms, {turn.pods / turn.seconds:.0f} pods/s",
                flush=True,
            )
            played.append(turn)
    for name in given.only:
        mine = [t.ms_per_pod for t in played if t.who == name]
        plain = [t.ms_per_pod for t in played if t.who == PLAIN]
        more = [a - b for a, b in zip(mine, plain, strict=False)]
        print(
            f"{name:16} {statistics.median(mine):.2f} ms ({min(mine):.2f}-{max(mine):.2f})",
            f"{statistics.median(more):+.2f} ms" if more else "",
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
