"""Which queues share what, as a site has said it over time, and what that means for pods that wait or have to go.

It counts pods as they are, and knows nothing of what a daemon believes: what it holds against one is therefore more
generous while things move, and exact when nothing moves any more. Only CPUs are shared out.
"""

import dataclasses
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from fractions import Fraction

from slurm_bridge.model import names
from tests.simulation import observed

QUEUE = names.JOB_PREFIX + "queue"

#: What a daemon acts on may be so old: it was deaf, or stood still, or a server did not answer.
WINDOW = 60.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """CPUs: what each queue is entitled to, and what all of them have together at most; None: without limit."""

    entitled: Mapping[str, int]
    most: int | None


class Realm:
    """Every law there was, and which pod is in which queue."""

    def __init__(self, law: Law, usual: str) -> None:
        self._laws: list[tuple[float, Law]] = [(0.0, law)]
        self._usual = usual
        self._troupes: dict[str, str] = {}

    def decree(self, law: Law, now: float) -> None:
        """It is so from now on."""
        self._laws.append((now, law))

    def enrol(self, troupe: str, queue: str) -> None:
        """All pods whose names begin like this."""
        self._troupes[troupe] = queue

    def queue_of(self, pod: observed.Pod) -> str:
        """What it says itself, or what its troupe says for it."""
        said = (pod.manifest["metadata"].get("annotations") or {}).get(QUEUE)
        return said or self._troupes.get(pod.key[1].partition("-")[0], self._usual)

    def _since(self, moment: float) -> Iterator[Law]:
        """The laws that have held at some time since then."""
        ends = [*(at for at, _ in self._laws[1:]), float("inf")]
        return (law for (_, law), end in zip(self._laws, ends, strict=True) if end > moment)

    # -- while things move -------------------------------------------------------------------------------------------

    def may_lose(self, victim: observed.Pod, pods: Collection[observed.Pod], now: float) -> bool:
        """At some time its queue may have had more than it is entitled to."""
        queue = self.queue_of(victim)
        peak = _peak((one for one in pods if one.ours and self.queue_of(one) == queue), now - WINDOW)
        return any(peak > law.entitled.get(queue, 0) for law in self._since(now - WINDOW))

    def is_too_much(self, pods: Collection[observed.Pod], now: float) -> bool:
        """At some time all of them together may have had more than they may."""
        peak = _peak((one for one in pods if one.ours), now - WINDOW)
        return any(law.most is not None and peak > law.most for law in self._since(now - WINDOW))

    def may_ask(self, asker: Collection[observed.Pod], pods: Collection[observed.Pod], now: float) -> bool:
        """The pods that were there all the time leave it something of what its queue is entitled to."""
        queue = self.queue_of(next(iter(asker)))
        there = (one for one in pods if one.ours and self.queue_of(one) == queue and one.stays(now - WINDOW))
        wanted = _cpus(there) + _cpus(one for one in asker if one.wanting)
        return any(wanted <= law.entitled.get(queue, 0) for law in self._since(now - WINDOW))

    # -- when nothing moves any more ---------------------------------------------------------------------------------

    def excuses(self, group: Collection[observed.Pod], others: Iterable[tuple[observed.Pod, int]]) -> bool:
        """There is no room for this group, and no queue owes it any; the others, each by one of it, have so much."""
        law = self._laws[-1][1]
        if law.most is None:
            return False
        queue, wanted = self.queue_of(next(iter(group))), _cpus(one for one in group if one.wanting)
        used: dict[str, list[int]] = {}
        for one, cpus in others:
            used.setdefault(self.queue_of(one), []).append(cpus)
        missing = sum(map(sum, used.values())) + wanted - law.most
        if missing <= 0:
            return False
        entitled = sum(used.get(queue, ())) + wanted <= law.entitled.get(queue, 0)
        owed = sum(_most(sizes, sum(sizes) - law.entitled.get(one, 0)) for one, sizes in used.items() if one != queue)
        return not (entitled and owed >= missing)


def _most(sizes: Iterable[int], surplus: int) -> int:
    """As much of these as goes into the surplus, each as a whole."""
    sums = {0}
    for size in sizes:
        sums |= {one + size for one in sums if one + size <= surplus}
    return max(sums)


def _cpus(pods: Iterable[observed.Pod]) -> Fraction:
    return observed.total(pod.needs for pod in pods).cpu


def _peak(pods: Iterable[observed.Pod], moment: float) -> Fraction:
    """The most that was there, or wanted to be, at any time since then."""
    lives = [(pod.born, pod.ended, pod.needs.cpu) for pod in pods if pod.ended is None or pod.ended >= moment]
    steps = itertools.chain.from_iterable(
        ((born, cpu), *([(ended, -cpu)] if ended is not None else [])) for born, ended, cpu in lives
    )
    # What comes is counted before what goes at the same moment.
    return max(
        itertools.accumulate(change for _, change in sorted(steps, key=lambda one: (one[0], -one[1]))),
        default=Fraction(),
    )
