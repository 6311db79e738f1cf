"""Who belongs to a workload, in which order, what each gets and where it is: for people and for machines."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from slurm_bridge.explain.explaining import Explanation
from slurm_bridge.explain.slots import Slot
from slurm_bridge.model import hostlist, names
from slurm_bridge.model.pod import Pod

#: A longer list helps nobody to see the order.
MOST: Final = 16


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One member. `slot` is the number of the one it takes, None where nobody can say; `job` its job's id as text."""

    rank: int
    name: str
    slot: int | None
    node: str
    job: str
    state: str


def rows(found: Explanation) -> Sequence[Row]:
    """Every member in rank order."""
    slot_of = {name: number for number, slot in enumerate(found.slots) for name in slot.names}
    return tuple(
        Row(
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
    """For a gang; of the slot only where there are several."""
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
    """What each member gets, and how many of them a node has room for."""
    for number, slot in enumerate(found, start=1):
        head = f"{number}: " if len(found) > 1 else ""
        count = f"{len(slot.names)} x " if len(slot.names) > 1 else ""
        yield f"{head}{count}{slot.amounts}"
        for room, nodes in (slot.fits or {}).items():
            word = f"an empty node has room for {room}" if room else "no room, even on an empty node"
            yield f"   {word}: {hostlist.compress(nodes)}"


def machine(row: Row) -> Mapping[str, Any]:
    """One member."""
    return dataclasses.asdict(row)


def machine_slot(slot: Slot) -> Mapping[str, Any]:
    """One slot; the room on nodes as pairs, null where nobody has looked."""
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
