"""One kind of workload as one row: everything that the program, its rights and its documents say of the kind."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from slurm_bridge.informers.store import Index
from slurm_bridge.model.announcement import Announcement
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Manifest
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import Root, Workload
from slurm_bridge.workloads.draft import ChildDraft
from slurm_bridge.workloads.given import Given, Members
from slurm_bridge.workloads.known import Known, Options


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KindPage:
    """What docs/workloads.md says of a kind: a cell for each column of its two tables."""

    title: str
    pods: str
    one: str
    minimum: str
    sources: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Companion:
    """Other objects that speak for the objects of a kind: a change of one counts as a change of theirs.

    `index` is the name of the index in `indexes` that finds the objects that one speaks for, by its namespace/name.
    """

    resource: Kind[Any]
    index: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KindSpec:
    """A kind of workload. A field with a default is for kinds that have the thing.

    name         what a Root, an owner record and messages call the kind
    handles      the names of objects that decide to which workload a pod belongs, from the pod alone
    claim        the workload that a pod belongs to, None when it is not of this kind: memory only, never a search
    gather       the whole of a workload that was claimed; each member is looked at only when enough are there
    page         the row of the kind in docs/workloads.md
    resource     the object that makes or groups the pods; None where there is no object. It is watched, it gets the
                 events of its workload, and the API server of the tests and the demo serves it
    owner        the object is an owner of its pods: it is read on the way up, and its annotations count
    suspended    whether the object must not run now                                            (owners only)
    deadline     after how many seconds the object ends its pods                                (owners only)
    companions   other objects that speak for the object; they are watched, too
    indexes      what stores file objects under
    announcement how the status of the object says that all members have nodes; needs the right to patch it
    counted      which field of the object says how many pods belong together
    makes        what its controller makes of the object, from its record and its manifest: `explain` shows the pods
                 before they exist. None where pods name the object
    part         the words for a part of the object, from what stands behind the colons of the root's uid
    prefixes     what stands before the slash of the annotations that the kind reads
    """

    name: str
    handles: Callable[[Pod], tuple[str, ...]]
    claim: Callable[[Pod, Known, Options], Root | None]
    gather: Callable[[Root, Members, Given], Workload | Wait]
    page: KindPage
    resource: Kind[Any] | None = None
    owner: bool = False
    suspended: Callable[[Any], bool] = lambda _object: False
    deadline: Callable[[Any], int | None] = lambda _object: None
    companions: tuple[Companion, ...] = ()
    indexes: Mapping[Kind[Any], Mapping[str, Index[Any]]] = dataclasses.field(default_factory=dict)
    announcement: Announcement | None = None
    makes: Callable[[Any, Manifest], Iterable[ChildDraft]] | None = None
    counted: str = ""
    part: Callable[[Sequence[str]], str] = lambda _behind: ""
    prefixes: frozenset[str] = frozenset()
