"""The members of a workload in rank order, with their slots and nodes: as text and as JSON."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from slurm_bridge.explain.explanation import Explanation
from slurm_bridge.explain.slots import Slot
from slurm_bridge.model import hostlist, names
from slurm_bridge.model.pod import Pod

#: The text shows this many members.
MOST: Final = 16


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MemberRow:
    """One member. `slot` is the number of its slot, None if it is undecided; `job` is a job id as text."""

    rank: int
    name: str
    slot: int | None
    node: str
    job: str
    state: str


def rows(found: Explanation) -> Sequence[MemberRow]:
    """Every member in rank order."""
    slot_of = {name: number for number, slot in enumerate(found.slots) for name in slot.names}
    return tuple(
        MemberRow(
            rank=rank,
            name=pod.metadata.name,
            slot=slot_of.get(pod.metadata.name),
            node=pod.spec.node_name,
            job=pod.metadata.labels.get(names.LABEL_JOB_ID, "") if pod.bound else "",
            state=_state(pod),
        )
        for rank, pod in enumerate(found.subject.members)
    )


def lines(found: Explanation, *, most: int | None) -> Iterator[str]:
    """The text; empty without a gang. The slot is shown if there are several."""
    if not found.subject.gang:
        return
    every = rows(found)
    shown, several = every[:most], len(found.slots) > 1
    width, place = max(len(row.name) for row in shown), len(str(shown[-1].rank))
    for row in shown:
        slot = f"slot {row.slot + 1}" if several and row.slot is not None else ""
        where = f"on {row.node}" if row.node else ""
        words = [slot, where, f"job {row.job}" if row.job else "", row.state]
        yield f"{row.rank:>{place}}  {row.name:<{width}}  {'  '.join(word for word in words if word)}".rstrip()
    if len(every) > len(shown):
        yield f"… and {len(every) - len(shown)} more"


def slots(found: Sequence[Slot]) -> Iterator[str]:
    """The resources of each slot, and how many of its members fit on a node."""
    for number, slot in enumerate(found, start=1):
        head = f"{number}: " if len(found) > 1 else ""
        count = f"{len(slot.names)} x " if len(slot.names) > 1 else ""
        yield f"{head}{count}{slot.amounts}"
        for room, nodes in (slot.fits or {}).items():
            word = f"an empty node has room for {room}" if room else "no room, even on an empty node"
            yield f"   {word}: {hostlist.compress(nodes)}"


def machine_slot(slot: Slot) -> Mapping[str, Any]:
    """One slot; null for the nodes if they were not read."""
    fits = None if slot.fits is None else [{"room": room, "nodes": sorted(each)} for room, each in slot.fits.items()]
    return {
        "members": list(slot.names),
        "cpus": slot.cpus,
        "memory_mib": slot.memory_mib,
        "gres": [dataclasses.asdict(one) for one in slot.gres],
        "fits": fits,
    }


def _state(pod: Pod) -> str:
    if pod.terminal:
        return f"over ({pod.status.phase})"
    if pod.terminating:
        return "being deleted"
    return "held by scheduling gates" if pod.gated else ""
