"""To which application a workload belongs, and which queue its pods ask for.

    the pods name an application     that one, of their namespace: the same id elsewhere is another application
    a controller was read            the highest one: a Deployment, a Job that is no part of more, the driver of Spark
    else                             the object that groups the pods, or the pod alone

YuniKorn's labels and annotations are read as YuniKorn reads them: the first one that is there counts, and the others
must not say otherwise. What they say of users is not believed, because each user can write it.
"""

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from slurm_bridge.model import names, texts
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Workload
from slurm_bridge.runtime import frozen_records

DOMAIN: Final = "yunikorn.apache.org/"
LABEL, ANNOTATION = "label", "annotation"

#: In the order in which they count.
IDS: Final = (
    (LABEL, f"{DOMAIN}app-id"),
    (ANNOTATION, f"{DOMAIN}app-id"),
    (LABEL, "applicationId"),
    (LABEL, "spark-app-selector"),
)
QUEUES: Final = ((LABEL, f"{DOMAIN}queue"), (ANNOTATION, f"{DOMAIN}queue"), (LABEL, "queue"))
#: What they say of users.
USERS: Final = ((ANNOTATION, f"{DOMAIN}user.info"), (LABEL, f"{DOMAIN}username"))

_KEYS: Final = frozenset(key for _, key in (*IDS, *QUEUES, *USERS))

_ID_WORDS: Final = "1 to 63 letters, digits, - _ and ., with a letter or digit at both ends"
_ID: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)
_QUEUE_WORDS: Final = "1 to 255 letters, digits and . _ : # / @ -"
_QUEUE: Final = re.compile(r"[A-Za-z0-9._:#/@-]{1,255}", re.ASCII)

Place = tuple[str, str]


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationIdentity:
    """`key` tells it apart from every other application of the cluster, `title` is for people.

    `given` is the id that the pods name, "" for one that follows from what makes them.
    """

    key: str
    title: str
    given: str = ""

    def within(self, queue: str, account: str) -> "ApplicationIdentity":
        """What makes pods is an application in each queue that these ask for, and for each of their service accounts.

        Else a Deployment that moves to another queue could not replace its pods one by one. A name is one application.
        """
        if self.given:
            return self
        return ApplicationIdentity(key=f"{self.key}\n{queue.lower()}\n{account}", title=self.title)


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PodsStatement:
    """What the pods of a workload say; `problem` is why that cannot be used, `ignored` what of it is not believed."""

    application: ApplicationIdentity
    queue: str = ""
    problem: str = ""
    ignored: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _PodMark:
    """One label or annotation that is there."""

    pod: Pod
    place: Place
    value: str

    def __str__(self) -> str:
        kind, key = self.place
        return f"{kind} {key}={texts.shown(self.value)}"


def read(workload: Workload) -> PodsStatement:
    """Of all its pods. Where they cannot be used, the workload belongs to what has made it."""
    ids, queues = list(_said(workload.pods, IDS)), list(_said(workload.pods, QUEUES))
    problem = _problem(ids, _ID, _ID_WORDS, "applications") or _problem(queues, _QUEUE, _QUEUE_WORDS, "queues")
    made_by = _made_by(workload)
    if problem:
        return PodsStatement(application=made_by, problem=problem, ignored=_ignored(workload.pods))
    return PodsStatement(
        application=_named(workload.root.namespace, ids[0].value) if ids else made_by,
        queue=queues[0].value if queues else "",
        ignored=_ignored(workload.pods),
    )


def _said(pods: Iterable[Pod], places: Sequence[Place]) -> Iterator[_PodMark]:
    """What is there and not empty, pod by pod."""
    for pod in pods:
        labels, annotations = pod.metadata.labels, pod.metadata.annotations
        # Most pods have none of them, and every pod is asked.
        if _KEYS.isdisjoint(labels) and _KEYS.isdisjoint(annotations):
            continue
        for place in places:
            kind, key = place
            value = _of(labels if kind == LABEL else annotations, key)
            if value:
                yield _PodMark(pod=pod, place=place, value=value)


def _of(mapping: Mapping[str, str], key: str) -> str:
    return mapping.get(key, "").strip()


def _problem(said: Sequence[_PodMark], form: re.Pattern[str], words: str, what: str) -> str:
    """What is wrong with the first one that is, in the words of its user."""
    for one in said:
        if not form.fullmatch(one.value):
            return f"Pod {'/'.join(one.pod.key)}: {one}: use {words}"
        if one.value != said[0].value:
            first = said[0] if one.pod is said[0].pod else f"{said[0]} of Pod {'/'.join(said[0].pod.key)}"
            return f"Pod {'/'.join(one.pod.key)}: {one} and {first} name two {what}: name one of them"
    return ""


def _ignored(pods: Sequence[Pod]) -> str:
    found = next(_said(pods, USERS), None)
    return " ".join(found.place) if found is not None else ""


def _named(namespace: str, given: str) -> ApplicationIdentity:
    # No kind of workload has this name, and neither part has a "/".
    return ApplicationIdentity(key=f"id/{namespace}/{given}", title=f"{namespace}/{given}", given=given)


def _made_by(workload: Workload) -> ApplicationIdentity:
    root, above = workload.root, workload.topmost
    if above is None:
        return ApplicationIdentity(key=root.object_key, title=f"{root.namespace}/{root.name}")
    # Whatever the object says, it is of the namespace of the pods.
    key = names.workload_key(above.kind, root.namespace, above.name, above.uid)
    return ApplicationIdentity(key=key, title=f"{root.namespace}/{above.name}")
