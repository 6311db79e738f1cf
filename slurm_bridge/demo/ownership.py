"""Which placeholders a pod may have: its own, or that of a group; determined from the pod alone, as a user would.

It shares no code with the daemon, so that an observer can disagree with it.
"""

from slurm_bridge.model import names
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.meta import Manifest

#: The owner records of these kinds name an object that pods know by name only.
_BY_NAME = frozenset({"PodGroup", "Group"})


def owner_of(owner: Owner) -> str:
    """The owner of a placeholder, in the notation of `candidates`."""
    return f"{owner.kind}:{owner.namespace}/{owner.name}" if owner.kind in _BY_NAME else owner.uid


def candidates(pod: Manifest) -> tuple[str, ...]:
    """Every owner whose placeholder this pod may have, the pod itself first."""
    metadata, namespace = pod["metadata"], pod["metadata"].get("namespace", "")
    marks = {**(metadata.get("annotations") or {}), **(metadata.get("labels") or {})}
    makers = (one["uid"] for one in metadata.get("ownerReferences") or () if one.get("controller"))
    group = marks.get(names.GROUP)
    named = [f"Group:{namespace}/{group}"] if group else []
    scheduling = (pod.get("spec") or {}).get("schedulingGroup") or {}
    keys = (names.LABEL_COSCHEDULING, names.ANNOTATION_KAI_GROUP)
    for name in (scheduling.get("podGroupName"), *map(marks.get, keys)):
        named += [f"PodGroup:{namespace}/{name}"] if name else []
    return (metadata["uid"], *named, *makers)
