"""A pocket cluster whose workloads wait in queues: the hook as it is configured, in the daemon's own brain."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from slurm_bridge.daemon import configuration
from slurm_bridge.families.yunikorn.hook import Yunikorn
from slurm_bridge.families.yunikorn.options import YunikornOptions
from slurm_bridge.families.yunikorn.partitions import YunikornPartitions
from slurm_bridge.hooks import calls, chain, needs
from slurm_bridge.hooks.services import ChainServices, HookServices
from slurm_bridge.ports import Scope
from slurm_bridge.scheduler.eviction import situation
from tests.component.scheduler.whole_core import Bridge

PROVIDED = [{"name": "provided"}]


def queue(name: str, *queues: Any, **fields: Any) -> dict[str, Any]:
    """A queue of a configuration, with those below it."""
    return {"name": name, **fields, **({"queues": list(queues)} if queues else {})}


def document(*queues: Any, rules: Any = None, **fields: Any) -> dict[str, Any]:
    """A configuration of one partition, in which everybody may submit everywhere."""
    root = {"name": "root", "submitacl": "*", "queues": list(queues)}
    partition = {"name": "default", "queues": [root], "placementrules": rules or PROVIDED, **fields}
    return {"partitions": [partition]}


class Queues:
    """The hook in a bridge: `configure` is what a reload does, `restart` what a new process does."""

    def __init__(self, bridge: Bridge, *queues: Any, **options: Any) -> None:
        self.bridge = bridge
        self.base = bridge.core.context.config
        self.around = ChainServices(clock=bridge.clock, settle=configuration.settle(), threads=False)
        self.around = dataclasses.replace(self.around, wake=bridge.core.queue.activate)
        queued = functools.partial(situation.of_queued, bridge.core.context, bridge.core.pod_index)
        self.around = dataclasses.replace(self.around, seen=bridge.core.context.keeper.snapshot, situation=queued)
        self.configure(*queues, **options)

    def configure(self, *queues: Any, **options: Any) -> None:
        """From now on it is configured so."""
        options.setdefault("configuration", document(*queues))
        self.hook = made(options, self.around.services_of("yunikorn"))
        self.install(self.hook)

    def install(self, hook: Yunikorn | YunikornPartitions) -> None:
        """It is part of the chain."""
        own = calls.Hook(name="yunikorn", hook=hook, needs=frozenset(hook.needs))
        both = chain.Chain([*self.base.chain.hooks, own], self.around)
        cluster = self.bridge.core.context.cluster
        listed = {need: Listed(cluster.list(needs.KINDS[need], Scope()).items) for need in hook.needs}
        both.see({**self.base.chain._layers.views, **listed})
        self.bridge.core.configure(dataclasses.replace(self.base, chain=both))

    def pod(self, name: str, queue: str = "root.a", *, cpu: str = "1", **changes: Any) -> str:
        """A pod that asks for a queue."""
        annotations = {"slurmjob.slinky.slurm.net/queue": queue, **changes.pop("annotations", {})}
        return self.bridge.pod(name, cpu=cpu, annotations=annotations, **changes)

    def one_by_one(self, *names: str) -> None:
        """Pods of queue a, each a while after the one before."""
        for name in names:
            self.pod(name)
            self.bridge.run(2)

    def said(self, name: str) -> tuple[str, str]:
        """Why a pod waits."""
        return self.bridge.condition(name)

    def running(self, *names: str) -> list[str]:
        """Those of these pods that have a node."""
        return [name for name in names if self.bridge.node_of(name)]

    def submitted(self) -> list[str]:
        """The names of all pods with living jobs, in the order of the jobs."""
        observer = self.bridge.world.observer
        owners = [observer.owner(job) for job in self.bridge.jobs() if not job.over]
        return [one.name for one in owners if one is not None]


def until(bridge: Bridge, condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Time passes, with a look at who has to go at every step, until it holds."""
    end = bridge.clock.now() + seconds
    while not condition():
        assert bridge.clock.now() < end, "it never came to that:\n" + "\n".join(bridge.world.journal[-30:])
        bridge.step(0.5)
        bridge.core.preempt_step()


class Listed:
    """Implements needs.View over one list."""

    def __init__(self, items: Any) -> None:
        self._items = {item.key: item for item in items}

    def get(self, namespace: str, name: str) -> Any:
        return self._items.get((namespace, name))

    def all(self) -> Any:
        return tuple(self._items.values())

    def where(self, _index: str, _value: str) -> Any:
        """Nothing of it is found by anything but its name."""
        return ()

    @property
    def version(self) -> int:
        return 0

    def __len__(self) -> int:
        return len(self._items)


def made(options: dict[str, Any], services: HookServices | None = None, **more: Any) -> Yunikorn:
    """The hook from options as they are written."""
    behind = services or HookServices(threads=False, **more)
    return Yunikorn(YunikornOptions.model_validate(options), behind)
