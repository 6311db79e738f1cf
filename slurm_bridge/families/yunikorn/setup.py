"""From the options to what the hook works with: the queues that count in its mode, and what they are in Slurm."""

import dataclasses
from collections.abc import Iterator, Mapping

from slurm_bridge.errors import BadConfiguration
from slurm_bridge.families.yunikorn import files
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
    """

    options: YunikornOptions
    document: Document
    written: PartitionDocument
    text: str = ""
    since: float = 0.0
    warnings: tuple[str, ...] = ()

    @property
    def partition(self) -> PartitionDocument:
        """As the core has it."""
        return self.document.partitions[0]

    @property
    def ahead(self) -> int:
        """How many may wait in Slurm; 0 for any number, as where Slurm decides."""
        return self.options.ahead if self.options.mode == LOCAL else 0

    @property
    def preempts(self) -> bool:
        """Others have to go for guarantees; never where Slurm decides."""
        return self.options.mode == LOCAL and self.written.preemption.enabled

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
    """Raises BadConfiguration with what is wrong."""
    text = files.text(options.file) if options.file else files.written(options.configuration)
    mapping = files.parsed(text, f"file {options.file}") if options.file else options.configuration
    written = validation.load(mapping, one_place=options.one_place)
    found = next((one for one in written.partitions if one.name == options.partition), None)
    if found is None:
        there = ", ".join(one.name for one in written.partitions)
        raise BadConfiguration(f"partition {options.partition!r}: the configuration has only {there}")
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
        warnings=tuple(map(str, written.warnings)),
    )
    problems = [*_unknown(lowered, found), *(_twice(setup) if options.slurm_limits else ())]
    if problems:
        raise BadConfiguration("\n".join(problems))
    return setup


def _unknown(targets: Mapping[str, TargetOptions], partition: PartitionDocument) -> Iterator[str]:
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
