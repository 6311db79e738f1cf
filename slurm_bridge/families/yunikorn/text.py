"""The picture of the queues for people."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from slurm_bridge.families.yunikorn import evictions_view, reasons
from slurm_bridge.families.yunikorn.picture import Picture

_HEADER = ("QUEUE", "STATE", "USED", "GUARANTEED", "MAX", "PENDING", "RUNS", "WAIT")
_NOT_SHOWN = "pods"
_STATES = {evictions_view.GOES: "has to go", evictions_view.GONE: "has gone"}


def lines(picture: Picture) -> Iterator[str]:
    """The tree, applications, waiting workloads, evictions, refusals; of each Slurm partition with its own queues."""
    for number, partition in enumerate(picture.get("partitions", ())):
        if number:
            yield ""
        yield from lines(partition)
    if "partitions" in picture:
        yield from _listed("problems", picture["problems"])
        return
    ahead = picture["ahead"]
    most = f" of {ahead['most']}" if ahead["most"] else ""
    yield f"mode {picture['mode']}, partition {picture['partition']}, ahead in Slurm {ahead['now']}{most}"
    if "size" in picture:
        yield f"size {reasons.all_of(picture['size'])}"
    yield ""
    rows = [_HEADER, *(_rows(picture["queues"], 0) if picture["queues"] else ())]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    several = (one for one in picture["applications"] if one["runs"] + one["waits"] > 1)
    yield from _listed("applications", map(_application, several))
    yield from _listed("waiting", map(_waiting, picture["waiting"]))
    yield from _listed("making room", map(_leaving, picture["preemption"]))
    yield from _listed("rejected", (f"{one['application']}  {one['reason']}" for one in picture["rejected"]))


def _rows(queue: Mapping[str, Any], depth: int) -> Iterator[tuple[str, ...]]:
    most = queue["maxapplications"]
    yield (
        "  " * depth + queue["path"].rpartition(".")[2],
        queue["state"] if queue["configured"] else f"{queue['state']}, made",
        *(_amount(queue[field]) for field in ("used", "guaranteed", "max", "pending")),
        f"{queue['running']}/{most}" if most else str(queue["running"]),
        str(queue["waiting"]),
    )
    for child in queue["queues"]:
        yield from _rows(child, depth + 1)


def _application(one: Mapping[str, Any]) -> str:
    waits = "1 waits" if one["waits"] == 1 else f"{one['waits']} wait"
    return f"{one['application']}  {one['queue']}: {one['runs']} let in, {waits}"


def _waiting(one: Mapping[str, Any]) -> str:
    of = f" of {one['application']}" if one["application"] != one["workload"] else ""
    return f"{one['workload']}{of}  {one['queue']}: {one['why']}"


def _amount(amount: Mapping[str, int]) -> str:
    shown = {kind: one for kind, one in amount.items() if kind != _NOT_SHOWN}
    return reasons.all_of(shown) if shown else "-"


def _leaving(one: Mapping[str, Any]) -> str:
    """Workloads that are being evicted, or were, with the queues that they leave."""
    whom = f"{one['for']}  {one['queue']}" if one["for"] else one["why"]
    there = []
    for victim in one["victims"]:
        named = f"{victim['workload']} ({victim['queue']})" if victim["queue"] else victim["workload"]
        there.append(f"{named} {_STATES[victim['state']]}")
    return f"{whom}, for {one['seconds']} s: {', '.join(there)}"


def _listed(title: str, entries: Iterable[str]) -> Iterator[str]:
    found = list(entries)
    if found:
        yield ""
        yield f"{title}:"
        yield from (f"  {one}" for one in found)
