"""From the options to what the hook works with: the queues that count in its mode, and what they are in Slurm."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from slurm_bridge.errors import BadConfiguration
from slurm_bridge.families.yunikorn import files, node_sorts
from slurm_bridge.families.yunikorn.options import TargetOptions, YunikornOptions
from slurm_bridge.families.yunikorn.queues.config import documents, validation
from slurm_bridge.families.yunikorn.queues.config.documents import Document, PartitionDocument, QueueDocument
from slurm_bridge.hooks.base import Fields

LOCAL, SLURM, OFF = "local", "slurm", "off"
#: What the daemon calls its partition to the core.
PARTITION = "default"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """`document` is what the core has, with the one partition that is used; `written` is that as it was given.

    `text` is the whole configuration as it was read, `since` when that was, and `warnings` what of it is ignored.
    `own` is the Slurm partition whose queues these are, "" for all of Slurm.
    """

    options: YunikornOptions
    document: Document
    written: PartitionDocument
    text: str = ""
    since: float = 0.0
    warnings: tuple[str, ...] = ()
    own: str = ""

    @property
    def partition(self) -> PartitionDocument:
        """As the core has it."""
        return self.document.partitions[0]

    @property
    def where(self) -> str:
        """What all nodes together are, for users."""
        return f"Slurm partition {self.own}" if self.own else "the cluster"

    @property
    def ahead(self) -> int:
        """How many may wait in Slurm; 0 for any number, as where Slurm decides."""
        return self.options.ahead if self.options.mode == LOCAL else 0

    @property
    def preempts(self) -> bool:
        """Others have to go for guarantees; never where Slurm decides."""
        return self.options.mode == LOCAL and self.written.preemption.enabled

    @property
    def reads_queues(self) -> bool:
        """A placement rule takes the queue that a workload asks for; without any rule that is so, too."""
        rules = [one for rule in self.partition.rules for one in rule.chain()]
        return not rules or any(rule.kind == "provided" for rule in rules)

    def target(self, path: str) -> tuple[str, TargetOptions]:
        """What a queue is in Slurm, and which entry says so; the one nearest to it counts."""
        return next(
            ((above, self.options.map[above]) for above in _upward(path) if above in self.options.map),
            ("", TargetOptions()),
        )

    def fields(self, path: str) -> Fields:
        """The same as fields of a request."""
        _, target = self.target(path)
        return Fields(
            account=target.account, qos=target.qos, partition=target.partition, source=f"hook yunikorn, queue {path}"
        )


def make(options: YunikornOptions, now: float = 0.0) -> Setup:
    """Of the one partition that is used. Raises BadConfiguration with what is wrong."""
    text, written = _read(options)
    found = next((one for one in written.partitions if one.name == options.partition), None)
    if found is None:
        there = ", ".join(one.name for one in written.partitions)
        raise BadConfiguration(f"partition {options.partition!r}: the configuration has only {there}")
    made = _of(options, found, text, now)
    return dataclasses.replace(made, warnings=tuple(map(str, written.warnings)))


def make_all(options: YunikornOptions, now: float = 0.0) -> Mapping[str, Setup]:
    """Of each partition, by its name. An entry of the map counts in the partitions that have its queue."""
    text, written = _read(options)
    known = {one.name: one for one in written.partitions}
    lost = [problem for path in options.map for problem in _in_none(path.lower(), written.partitions)]
    if lost:
        raise BadConfiguration("\n".join(lost))
    found = {}
    for name, partition in known.items():
        theirs = {path: to for path, to in options.map.items() if not any(_unknown([path.lower()], partition))}
        mine = options.model_copy(update={"partition": name, "map": theirs})
        found[name] = dataclasses.replace(_of(mine, partition, text, now), own=name)
    first = next(iter(found))
    return {**found, first: dataclasses.replace(found[first], warnings=tuple(map(str, written.warnings)))}


def _read(options: YunikornOptions) -> tuple[str, Document]:
    """The configuration as a text, and what that says."""
    text = files.text(options.file) if options.file else files.written(options.configuration)
    mapping = files.parsed(text, f"file {options.file}") if options.file else options.configuration
    return text, validation.load(mapping, one_place=options.one_place, node_sorts=node_sorts.load(options.node_sorts))


def _of(options: YunikornOptions, found: PartitionDocument, text: str, now: float) -> Setup:
    lowered = {path.lower(): target for path, target in options.map.items()}
    # Elsewhere only names and access lists count: order, shares and limits are Slurm's, and counted there alone.
    used = found if options.mode == LOCAL else dataclasses.replace(found, root=_free(found.root), limits=())
    setup = Setup(
        options=options.model_copy(update={"map": lowered}),
        # One name for good: a configuration that uses another partition changes the queues, and loses none in them.
        document=Document(partitions=(dataclasses.replace(used, name=PARTITION),)),
        written=found,
        text=text,
        since=now,
    )
    problems = [*_unknown(lowered, found), *(_twice(setup) if options.slurm_limits else ())]
    if problems:
        raise BadConfiguration("\n".join(problems))
    return setup


def _in_none(path: str, partitions: Sequence[PartitionDocument]) -> Iterator[str]:
    """An entry of the map for a queue that no partition can ever have."""
    words = [problem for one in partitions for problem in _unknown([path], one)]
    if len(words) == len(partitions):
        yield words[0]


def _unknown(targets: Iterable[str], partition: PartitionDocument) -> Iterator[str]:
    """Entries of the map for queues that can never be."""
    known = dict(documents.walk(partition.root))
    for path in targets:
        above = next((one for one in _upward(path) if one in known), "")
        if path not in known and (not above or known[above].leaf):
            yield f"map: {path!r} is no queue; there are {', '.join(sorted(known))}"


def _twice(setup: Setup) -> Iterator[str]:
    """Queues with limits of their own, mapped to what has limits in Slurm, where both would count."""
    if setup.options.mode != LOCAL:
        return
    for path, queue in documents.walk(setup.written.root):
        given = {
            "guaranteed": queue.guaranteed,
            "max": queue.max,
            "maxapplications": queue.max_applications,
            "limits": queue.limits,
        }
        limited = [name for name, value in given.items() if value]
        above, target = setup.target(path)
        mapped = [f"{kind} {name}" for kind in ("account", "qos") if (name := getattr(target, kind))]
        if limited and mapped:
            yield (
                f"map.{above}: queue {path} has {' and '.join(limited)} here, and is mapped to {' and '.join(mapped)}, "
                f"which slurm_limits says has limits in Slurm: they would count twice; "
                f"use mode slurm, take away one of the two, or set slurm_limits to false"
            )


def _free(queue: QueueDocument) -> QueueDocument:
    template = queue.template
    if template is not None:
        template = dataclasses.replace(template, guaranteed=None, max=None, max_applications=0)
    return dataclasses.replace(
        queue,
        guaranteed=None,
        max=None,
        max_applications=0,
        limits=(),
        template=template,
        queues=tuple(map(_free, queue.queues)),
    )


def _upward(path: str) -> Iterator[str]:
    """The path of a queue, then those of all above it."""
    while path:
        yield path
        path = path.rpartition(".")[0]
