"""The tree of a configuration: what holds for every queue, the first tree, and the queues that placement makes.

Names in the tree are lower case. A queue that placement made is not managed: it is not configured, a leaf of that kind
has the template of the nearest queue above with one, and it goes when it is empty.
"""

import dataclasses
from collections.abc import Mapping, Sequence

from slurm_bridge.families.yunikorn.queues import acl, tree
from slurm_bridge.families.yunikorn.queues.config import documents, properties
from slurm_bridge.families.yunikorn.queues.config.documents import Template
from slurm_bridge.families.yunikorn.queues.config.properties import Properties
from slurm_bridge.families.yunikorn.queues.settings import QueueSettings
from slurm_bridge.families.yunikorn.queues.tree import SEPARATOR


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What holds for one configured queue, and for those that come to be below it."""

    path: str
    leaf: bool
    settings: QueueSettings
    handed_down: Properties
    template: Template | None
    where: str


#: The configured queues of a partition by path, parents first, siblings in the configured order.
Plan = Mapping[str, Planned]


def plan(partition: documents.PartitionDocument) -> Plan:
    """What holds for each queue, with all that is handed down to it."""
    planned: dict[str, Planned] = {}
    for path, queue in documents.walk(partition.root):
        planned[path] = _planned(path, queue, planned.get(path.rpartition(SEPARATOR)[0]))
    return planned


def _planned(path: str, queue: documents.QueueDocument, above: Planned | None) -> Planned:
    begin = above.handed_down if above else properties.DEFAULTS
    own = properties.overlaid(begin, queue.properties)
    # A parent passes the order of applications on to its leaves; its own children are in the order that it states.
    policy = own.sort_policy if queue.leaf else queue.properties.sort_policy
    settings = dataclasses.replace(
        _settings(own),
        guaranteed=queue.guaranteed,
        max=queue.max,
        max_applications=queue.max_applications,
        submit_acl=acl.read(queue.submit_acl),
        admin_acl=acl.read(queue.admin_acl),
        sort_policy=policy,
    )
    return Planned(
        path=path,
        leaf=queue.leaf,
        settings=settings,
        handed_down=properties.handed_down(own),
        template=queue.template or (above.template if above else None),
        where=queue.where,
    )


def _settings(own: Properties) -> QueueSettings:
    return QueueSettings(**{field.name: getattr(own, field.name) for field in dataclasses.fields(Properties)})


def build(planned: Plan) -> tree.Queue:
    """The tree as it is configured, without any usage."""
    first, *others = planned.values()
    root = tree.Queue(first.path, leaf=first.leaf, settings=first.settings)
    for one in others:
        add(root, one)
    return root


def add(root: tree.Queue, one: Planned) -> tree.Queue:
    """A configured queue, put below its parent, which stands in the tree already."""
    above, _, name = one.path.rpartition(SEPARATOR)
    return tree.Queue(name, tree.find(root, above), leaf=one.leaf, settings=one.settings)


# -- queues that placement makes -------------------------------------------------------------------------------------


def create(root: tree.Queue, planned: Plan, path: str) -> tree.Queue:
    """The leaf of this path, made with all that is missing above it; ValueError says why not, and nothing is made."""
    names = path.lower().split(SEPARATOR)
    here, missing = _standing(root, names)
    if here.state is not tree.State.ACTIVE or here.leaf == bool(missing):
        kind = here.state.value if here.state is not tree.State.ACTIVE else "a leaf" if here.leaf else "a parent"
        raise ValueError(f"queue {path} cannot be made: {here.path} is {kind}")
    for place, name in enumerate(missing, start=1):
        leaf = place == len(missing)
        here = tree.Queue(name, here, leaf=leaf, settings=made_settings(planned, f"{here.path}.{name}", leaf=leaf))
        here.managed = False
    return here


def _standing(root: tree.Queue, names: Sequence[str]) -> tuple[tree.Queue, Sequence[str]]:
    """The last queue of a path that stands in the tree, and the names that are missing below it."""
    here = root
    for place, name in enumerate(names[1:], start=1):
        child = here.children.get(name)
        if child is None:
            return here, names[place:]
        here = child
    return here, ()


def made_settings(planned: Plan, path: str, *, leaf: bool) -> QueueSettings:
    """The settings of a queue that is not configured: none for the recovery queue, which has to take all."""
    above = path
    while above not in planned:
        above = above.rpartition(SEPARATOR)[0]
    near = planned[above]
    if path == acl.RECOVERY:
        return QueueSettings()
    if not leaf or near.template is None:
        return dataclasses.replace(
            _settings(near.handed_down), sort_policy=near.handed_down.sort_policy if leaf else None
        )
    return dataclasses.replace(
        _settings(properties.overlaid(near.handed_down, near.template.properties)),
        guaranteed=near.template.guaranteed,
        max=near.template.max,
        max_applications=near.template.max_applications,
    )
