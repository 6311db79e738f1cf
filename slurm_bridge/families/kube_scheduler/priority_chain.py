"""All configured priorities for one pod: those over columns are remembered, those over single nodes are asked anew."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from slurm_bridge.cluster.columns import Mask
from slurm_bridge.cluster.memo import VersionCache
from slurm_bridge.families.kube_scheduler import matrix, single
from slurm_bridge.families.kube_scheduler.kept import Carried, ScoreCache
from slurm_bridge.families.kube_scheduler.matrix import UNRATED, Prioritized, Scored
from slurm_bridge.families.kube_scheduler.options import KubeSchedulerOptions
from slurm_bridge.families.kube_scheduler.priorities import numbers, table
from slurm_bridge.families.kube_scheduler.priorities.rule import BadPriority, PriorityConfig
from slurm_bridge.families.kube_scheduler.scene import Scene
from slurm_bridge.families.kube_scheduler.single import PriorityFailure
from slurm_bridge.hooks.base import Nodes, Session
from slurm_bridge.hooks.needs import Need
from slurm_bridge.runtime import packages

PARALLELISM = 16

#: A message that names more failures is too long to help; `failures` has all of them.
MOST_NAMED = 5

#: So many shapes of pods are remembered: at twenty thousand nodes each takes half a megabyte.
MOST_SHAPES = 64

#: Of so many shapes the raw scores are carried along while the cluster changes: a megabyte each at that size.
MOST_KEPT = 16

#: Takes lines of the finest log level: the function that makes them is called only when that level is on.
Finest = Callable[[Callable[[], Iterator[str]]], None]


class PrioritiesFailed(Exception):
    """Everything that went wrong in one run, each with its priority and its node."""

    def __init__(self, failures: Sequence[PriorityFailure]) -> None:
        more = [f"and {len(failures) - MOST_NAMED} more"] if len(failures) > MOST_NAMED else []
        super().__init__("; ".join([*map(str, failures[:MOST_NAMED]), *more]))
        self.failures = tuple(failures)


def unheard(_: Callable[[], Iterator[str]]) -> None:
    """The finest log level is off."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Extended:
    """What an extender said of nodes: a further row."""

    name: str
    weight: int
    scores: Mapping[str, int]


class Prioritizer:
    """The priorities of one configuration; used from one pass at a time or several."""

    def __init__(
        self, configs: Iterable[PriorityConfig], *, parallelism: int = PARALLELISM, finest: Finest = unheard
    ) -> None:
        self.configs = tuple(configs)
        self._parallelism = parallelism
        self._finest = finest
        self._shipped = tuple(config for config in self.configs if config.over_columns)
        self._own = tuple(config for config in self.configs if not config.over_columns)
        #: By identity of the sets, which the answers hold.
        self._known: VersionCache[tuple[bytes, int], tuple[Nodes, Prioritized]] = VersionCache(MOST_SHAPES)
        self._kept = ScoreCache(MOST_KEPT)
        named: dict[str, list[str]] = {}
        for config in self.configs:
            named.setdefault(table.identity(config.name), []).append(config.name)
        if twice := [_twice(names) for names in named.values() if len(names) > 1]:
            raise BadPriority("\n".join(sorted(twice)))

    @property
    def needs(self) -> frozenset[Need]:
        """What has to be watched for them."""
        return frozenset[Need]().union(*(config.needs for config in self.configs))

    @property
    def foreign(self) -> bool:
        """A site's code is among them: it may hang."""
        return bool(self._own)

    def run(
        self,
        scene: Scene,
        session: Session,
        nodes: Nodes,
        *,
        key: bytes | None = None,
        extended: Sequence[Extended] = (),
    ) -> Prioritized:
        """The scores of these nodes; raises PrioritiesFailed.

        `key` stands for all that the shipped ones look at beside the snapshot: the pod's class, and the versions of
        what the scene looks up. With None nothing is remembered.
        """
        mask = scene.columns.mask(nodes)
        if not self.configs and not extended:
            equal = numbers.constant(len(scene.columns), UNRATED)
            return Prioritized(columns=scene.columns, nodes=mask, rows=(), combined=equal)
        if self._own:
            found = self._with_own(scene, session, nodes, key)
        else:
            found = self._remembered(scene, session, nodes, key)
        if extended:
            rows = [
                Scored(name=one.name, weight=one.weight, values=matrix.by_row(scene.columns, one.scores))
                for one in extended
            ]
            found = _put_together(scene, mask, [*found.rows, *rows])
        self._finest(lambda: found.lines(scene.pod))
        return found

    def _remembered(self, scene: Scene, session: Session, nodes: Nodes, key: bytes | None) -> Prioritized:
        """The shipped ones look at nothing but the scene: equal pods get the same answer until something changes."""

        def work_out() -> Prioritized:
            mask = scene.columns.mask(nodes)
            carried = self._kept.at(key, scene) if key is not None else None
            return _put_together(scene, mask, _rows(self._shipped, scene, session, mask, carried=carried))

        if key is None:
            return work_out()
        return self._known.get(session.snapshot.use_version, (key, id(nodes)), lambda: (nodes, work_out()))[1]

    def _with_own(self, scene: Scene, session: Session, nodes: Nodes, key: bytes | None) -> Prioritized:
        """Both kinds, in the configured order; whatever failed of both is told together."""
        rows: list[Scored] = []
        failures: list[PriorityFailure] = []
        mask = scene.columns.mask(nodes)
        for ask in (
            lambda: self._remembered(scene, session, nodes, key).rows,
            lambda: _rows(self._own, scene, session, mask, parallelism=self._parallelism),
        ):
            try:
                rows += ask()
            except PrioritiesFailed as failed:
                failures += failed.failures
        if failures:
            raise PrioritiesFailed(sorted(failures))
        order = {config.name: place for place, config in enumerate(self.configs)}
        return _put_together(scene, mask, sorted(rows, key=lambda row: order[row.name]))


def of(options: KubeSchedulerOptions, finest: Finest = unheard) -> Prioritizer:
    """As configured; raises BadPriority with all that is wrong."""
    installed, configs, problems = packages.offered(table.GROUP), [], []
    for one in options.priorities:
        args = dict(one.args)
        if table.known(one.name) == "InterPodAffinity":
            args = {"hard_pod_affinity_weight": options.hard_pod_affinity_weight, **args}
        try:
            configs.append(table.configured(one.name, one.weight, args, installed))
        except BadPriority as bad:
            problems.append(str(bad))
    if problems:
        raise BadPriority("\n".join(problems))
    return Prioritizer(configs, parallelism=options.parallelism, finest=finest)


def _rows(
    configs: Sequence[PriorityConfig],
    scene: Scene,
    session: Session,
    mask: Mask,
    *,
    parallelism: int = 1,
    carried: Carried | None = None,
) -> list[Scored]:
    run = single.Run(scene, session, mask, parallelism, carried)
    run.all(configs)
    if run.failures:
        raise PrioritiesFailed(run.failures)
    found = ((config, run.values[config.name]) for config in configs)
    return [
        Scored(name=config.name, weight=config.weight, values=values) for config, values in found if values is not None
    ]


def _twice(names: Sequence[str]) -> str:
    """Whether under one name or several, all of them would count."""
    different = list(dict.fromkeys(names))
    if len(different) == 1:
        return f"priority {different[0]}: is configured twice"
    return f"priorities {' and '.join(different)}: are names of one priority; configure it once"


def _put_together(scene: Scene, mask: Mask, rows: Sequence[Scored]) -> Prioritized:
    combined = matrix.combine(rows, len(scene.columns))
    return Prioritized(columns=scene.columns, nodes=mask, rows=tuple(rows), combined=combined)
