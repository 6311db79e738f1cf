"""What administrators may ask for where each partition of Slurm has queues of its own."""

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence

from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.errors import BadConfiguration
from slurm_bridge.families.yunikorn import files, setup
from slurm_bridge.families.yunikorn.admin import InForce, QueueAdmin
from slurm_bridge.families.yunikorn.options import YunikornOptions
from slurm_bridge.families.yunikorn.partition_check import PartitionCheck
from slurm_bridge.families.yunikorn.setup import Setup


class PartitionsAdmin:
    """All partitions have one configuration: the first desk reads it, and each has a say in another one.

    `losses`: partitions that are in use, and would be lost if there were only those that it is called with.
    """

    def __init__(
        self,
        options: YunikornOptions,
        desks: Sequence[QueueAdmin],
        snapshot: Callable[[], ClusterSnapshot],
        losses: Callable[[Collection[str]], Sequence[str]],
    ) -> None:
        self._options, self._desks, self._snapshot, self._losses = options, desks, snapshot, losses

    def may(self, name: str, groups: Sequence[str]) -> bool:
        """Whether the user administers the root queue of every partition: a configuration is that of all of them."""
        return all(desk.may(name, groups) for desk in self._desks)

    @property
    def in_force(self) -> InForce:
        """What is decided by."""
        names = ", ".join(desk.setup.own for desk in self._desks)
        return dataclasses.replace(self._desks[0].in_force, partition=names)

    @property
    def stored(self) -> tuple[str, str, str] | None:
        """As `QueueAdmin.stored`."""
        return self._desks[0].stored

    def problems(self, body: bytes) -> tuple[str, ...]:
        """All that keeps this from taking the place of the one in force; Unreadable where it is no YAML."""
        found = self._desks[0].mistakes(body)
        if found:
            return found
        try:
            made = self._made(body)
        except BadConfiguration as error:
            return tuple(str(error).splitlines())
        wrong = [problem for desk in self._desks if (one := made.get(desk.setup.own)) for problem in desk.against(one)]
        shared = dict.fromkeys(PartitionCheck(made).overlaps(self._snapshot()).values())
        return (*wrong, *shared, *self._losses(made))

    def warnings(self, body: bytes) -> tuple[str, ...]:
        """What of this would be ignored, and partitions that Slurm does not have."""
        ignored = self._desks[0].warnings(body)
        try:
            check = PartitionCheck(self._made(body))
        except BadConfiguration:
            return ignored
        return (*ignored, *check.missing(self._snapshot()))

    def _made(self, body: bytes) -> Mapping[str, Setup]:
        return setup.make_all(self._options.model_copy(update={"configuration": files.handed_in(body), "file": ""}))
