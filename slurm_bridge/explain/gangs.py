"""Why pods are a gang, and the source of each of its numbers."""

from typing import Final

from slurm_bridge.model import names
from slurm_bridge.model.workload import MemberLost, Workload
from slurm_bridge.translate.translator import Value
from slurm_bridge.workloads import base, kind_table, voices
from slurm_bridge.workloads.given import Given

_WORDS: Final = {lost: word for word, lost in voices.MEMBER_LOST.items()} | {MemberLost.FOLLOW: "follow"}


def values(workload: Workload, given: Given) -> tuple[Value, ...]:
    """Empty for a single pod."""
    gang = workload.gang
    if gang is None:
        return ()
    found = base.subject(workload.root, given.known)
    what = names.GROUP_SIZE if found is None else kind_table.SPECS[found.kind].counted
    counted = f"{what} of {workload.root}"
    size = (Value(field="size", value=str(gang.size), source=counted),) if gang.size is not None else ()
    return (
        Value(field="minimum", value=str(gang.minimum), source=counted),
        *size,
        Value(
            field="member lost",
            value=_WORDS[gang.member_lost],
            source=f"{_lost_source(workload, given)}: {gang.member_lost.value}",
        ),
    )


def _lost_source(workload: Workload, given: Given) -> str:
    for source in reversed(workload.sources):
        if source.annotations.get(names.ANNOTATION_MEMBER_LOST, "").strip().lower() in voices.MEMBER_LOST:
            return f"annotation {names.ANNOTATION_MEMBER_LOST} of {source}"
    if given.options.member_lost is not None:
        return "setting workloads.member_lost"
    return f"as a {workload.root.kind} has it"
