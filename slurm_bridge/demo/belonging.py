"""Whose job a pod may have: its own, or that of a group. Worked out from the pod alone, as a user would.

The daemon's own reckoning is not asked: whoever looks has to be able to disagree.
"""

from slurm_bridge.model import names
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.meta import Manifest

#: Whose owner record names an object that pods know by its name alone.
_BY_NAME = frozenset({"PodGroup", "Group"})


def whose(owner: Owner) -> str:
    """What an owner record says, in the words of `candidates`."""
    return f"{owner.kind}:{owner.namespace}/{owner.name}" if owner.kind in _BY_NAME else owner.uid


def candidates(pod: Manifest) -> tuple[str, ...]:
    """All whose placeholder this pod could be a part of, itself first."""
    metadata, namespace = pod["metadata"], pod["metadata"].get("namespace", "")
    marks = {**(metadata.get("annotations") or {}), **(metadata.get("labels") or {})}
    makers = (one["uid"] for one in metadata.get("ownerReferences") or () if one.get("controller"))
    group = marks.get(names.GROUP)
    named = [f"Group:{namespace}/{group}"] if group else []
    scheduling = (pod.get("spec") or {}).get("schedulingGroup") or {}
    for name in (scheduling.get("podGroupName"), marks.get(names.LABEL_COSCHEDULING)):
        named += [f"PodGroup:{namespace}/{name}"] if name else []
    return (metadata["uid"], *named, *makers)
