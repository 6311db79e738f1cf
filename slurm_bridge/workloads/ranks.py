"""The order of the members of a gang: the one in which their programs count themselves."""

import re
from typing import Final

from slurm_bridge.model import names
from slurm_bridge.model.pod import Pod
from slurm_bridge.workloads import voices

#: Sorts members, in the order of the parts that `rank` names.
Rank = tuple[int, int, int, str]

#: Sorts behind every number.
_NO_NUMBER: Final = 2**31

_TRAILING = re.compile(r"-([0-9]{1,9})$")


def rank(pod: Pod) -> Rank:
    """The Job's place in the JobSet, the index in the Job or group, the number at the end of the name, the name."""
    labels, annotations = pod.metadata.labels, pod.metadata.annotations
    job = labels.get(names.LABEL_JOBSET_GLOBAL_INDEX)
    within = labels.get(names.LABEL_LWS_WORKER) or annotations.get(names.ANNOTATION_COMPLETION_INDEX)
    trailing = _TRAILING.search(pod.metadata.name)
    number = int(trailing.group(1)) if trailing else _NO_NUMBER
    return _number(job), _number(within), number, pod.metadata.name


def _number(text: str | None) -> int:
    # Most pods have no such label, and every look at a gang asks for both.
    found = voices.number(text) if text else None
    return _NO_NUMBER if found is None else found
