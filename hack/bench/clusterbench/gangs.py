"""One gang of hundreds of pods, ours and the raw loop's by turns: from all pods there to all pods bound.

Both get the same pods, created alike; the clock starts when the last of them is sent. What is compared is one submit,
the wait for Slurm, one look at what the job holds, and a binding for each pod: the raw loop does this and nothing else.
"""

import dataclasses
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import bench_history
from clusterbench import contestants, figures, report, turns
from clusterbench.contestants import OURS, RAW
from clusterbench.testbed import Bed
from slurm_bridge.model import hostlist

PREFIX = "gang"
#: How much longer than the raw loop we may take.
GOAL = 1.3


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """One contestant, once. `bound`: the part after the job ran, None where slurmctld's log does not have its start."""

    who: str
    members: int
    nodes: int
    seconds: float
    bound: float | None
    cpu: Mapping[str, float]
    calls: Mapping[str, Mapping[str, float]]

    @property
    def waited(self) -> float | None:
        """The part before that."""
        return None if self.bound is None else self.seconds - self.bound

    def calls_of(self, side: str) -> float:
        """Calls that one server counted."""
        return sum(self.calls.get(side, {}).values())


_FIGURES: Sequence[tuple[str, Callable[[Gang], float | None]]] = (
    ("s all there to all bound", lambda gang: gang.seconds),
    ("s all there to RUNNING", lambda gang: gang.waited),
    ("s RUNNING to all bound", lambda gang: gang.bound),
    ("messages to slurmctld", lambda gang: gang.calls_of("slurmctld")),
    ("requests to apiserver per pod", lambda gang: gang.calls_of("apiserver") / gang.members),
    ("CPU ms per pod, all processes", lambda gang: 1000 * sum(gang.cpu.values()) / gang.members),
    ("CPU ms per pod, the contestant", lambda gang: 1000 * gang.cpu[gang.who] / gang.members),
    ("nodes", lambda gang: gang.nodes),
)

_COMPARED: Mapping[str, Callable[[Gang], float | None]] = {
    "all there to all bound": lambda gang: gang.seconds,
    "RUNNING to all bound": lambda gang: gang.bound,
}


def measure(bed: Bed, members: int, rounds: int, folder: pathlib.Path) -> list[Gang]:
    """Both by turns; a line for each."""
    raw = contestants.raw_with({"warm": turns.WARM, PREFIX: members})
    played = []
    for round_ in range(rounds):
        for name in figures.order([OURS.name, RAW.name], round_):
            gang = _play(bed, OURS if name == OURS.name else raw, members, folder)
            print(f"round {round_ + 1}: {_line(gang)}", flush=True)
            played.append(gang)
    return played


def _play(bed: Bed, contestant: contestants.Contestant, members: int, folder: pathlib.Path) -> Gang:
    with turns.staged(bed, contestant, folder, together=True) as stage:
        count, starts = turns.Count(bed, stage.running), bed.starts()
        meter, own = bed.meter({contestant.name: stage.running.pid}), turns.own_cpu()
        created = stage.create(members, PREFIX)
        stage.await_bound(members, PREFIX, 60 + members / turns.SLOWEST)
        created.wait()
        assert created.cpu is not None
        cpu = {**meter.read(), "loader": created.cpu, "observer": turns.own_cpu() - own}
        calls = count.read()
        bound = stage.observer.bound_of(PREFIX)
        where = {name: stage.observer.nodes[name] for name in bound}
        job = one_job(stage.observer.jobs[name] for name in bound)
        same_nodes(where, bed.nodes_of(job))
        start = starts.starts().get(job)
        stage.clear()
        return Gang(
            who=contestant.name,
            members=members,
            nodes=len(set(where.values())),
            seconds=max(bound.values()) - max(created.at.values()),
            bound=max(bound.values()) - start.when if start is not None else None,
            cpu=cpu,
            calls=calls,
        )


def one_job(jobs: Iterable[int]) -> int:
    """The job of all these pods; RuntimeError when it is not one."""
    first, *others = sorted(set(jobs))
    if others:
        raise RuntimeError(f"the pods of one gang are bound by jobs {[first, *others]}")
    return first


def same_nodes(nodes: Mapping[str, str], held: str) -> None:
    """A fast wrong answer is worth nothing. `held` is what Slurm gave to the job, as Slurm writes it."""
    names = set(hostlist.expand(held))
    for name, node in nodes.items():
        if node not in names:
            raise RuntimeError(f"{name} runs on {node}, but Slurm gave {held} to its job")


def _line(gang: Gang) -> str:
    ran = "" if gang.bound is None else f", {gang.bound:.2f} s after their job ran"
    return f"{gang.who:<16} {gang.members} pods bound {gang.seconds:.2f} s after the last was created{ran}"


def table(played: Sequence[Gang]) -> str:
    """Medians of both, how they compare, and what our calls were."""
    members = max(gang.members for gang in played)
    by_who = [[gang for gang in played if gang.who == who] for who in (OURS.name, RAW.name)]
    rows = [[f"a gang of {members}, median", OURS.name, RAW.name]]
    rows += [[what, *(report.cell(figures.median(some, figure)) for some in by_who)] for what, figure in _FIGURES]
    lines = [f"{row[0]:<40}" + "".join(f"{cell:>16}" for cell in row[1:]) for row in rows]
    return "\n".join([*lines, "", *_compared(played), *_calls(played)])


def _compared(played: Sequence[Gang]) -> Iterator[str]:
    for what, figure in _COMPARED.items():
        if spread := figures.spread(figures.ratios(played, OURS.name, RAW.name, figure)):
            yield (
                f"{OURS.name} / {RAW.name}, {what} within a round: {spread['median']:.2f} "
                f"(from {spread['least']:.2f} to {spread['most']:.2f}; the goal is at most {GOAL})"
            )


def _calls(played: Sequence[Gang]) -> list[str]:
    """What the daemon counted itself, by kind; its watches and its lease are among it."""
    ours = [gang for gang in played if gang.who == OURS.name]
    return [
        f"calls of {OURS.name} to {side}: " + ", ".join(f"{kind} {number:.0f}" for kind, number in _median(ours, side))
        for side in ("slurm", "kubernetes")
    ]


def _median(ours: Sequence[Gang], side: str) -> list[tuple[str, float]]:
    """The most frequent first; a kind that one turn lacks counts 0 there."""
    found = [gang.calls.get(f"own {side}", {}) for gang in ours]
    numbers = {kind: figures.median(ours, _number(side, kind)) or 0.0 for one in found for kind in one}
    return sorted(numbers.items(), key=lambda one: (-one[1], one[0]))


def _number(side: str, kind: str) -> Callable[[Gang], float]:
    return lambda gang: gang.calls.get(f"own {side}", {}).get(kind, 0.0)


def values(played: Sequence[Gang]) -> Iterator[bench_history.Values]:
    """Each figure of both and of the comparisons, with its value in every round."""
    for who in (OURS.name, RAW.name):
        for what, figure in _FIGURES:
            yield who, what, [value for gang in played if gang.who == who and (value := figure(gang)) is not None]
    for what, compared in _COMPARED.items():
        yield f"{OURS.name} / {RAW.name}", what, figures.ratios(played, OURS.name, RAW.name, compared)


def document(played: Sequence[Gang]) -> dict[str, object]:
    """For programs, with every turn."""
    ratios = {
        what: figures.spread(figures.ratios(played, OURS.name, RAW.name, figure)) for what, figure in _COMPARED.items()
    }
    return {"gang": {"goal": GOAL, "ratios": ratios, "turns": [_as_json(gang) for gang in played]}}


def _as_json(gang: Gang) -> dict[str, object]:
    return {**dataclasses.asdict(gang), "waited": gang.waited}
