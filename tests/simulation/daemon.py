"""The one place that knows how a core is made: by the program's own builder, with settings of the simulation."""

import dataclasses
import functools
import hashlib
import random
from collections.abc import Mapping
from typing import Any

from slurm_bridge import ports
from slurm_bridge.daemon import brain, configuration
from slurm_bridge.hooks import base, calls, chain
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import Workload
from slurm_bridge.settings.model import Settings
from slurm_bridge.workloads import known
from tests.simulation import groups
from tests.simulation.observer import CLUSTER_ID
from tests.simulation.process import Build

#: What is lost is found, and who backs off comes back, within the patience of a run.
SETTINGS: dict[str, Any] = {
    "cluster_id": CLUSTER_ID,
    "slurm": {"url": "http://slurm", "token_file": "token", "job_ids": {"first": 50_000_000, "last": 66_999_999}},
    "hooks": [{"name": "policy"}, {"name": "eligibility", "options": {"volumes": False}}],
    "mirror": {"sweep_seconds": 45},
    "attempts": {"window_seconds": 6},
    "workloads": {"bind_seconds": int(groups.BIND_SECONDS)},
    "scheduling": {"backoff_most_seconds": 30, "avoid_seconds": 60},
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Variant:
    """How a site has configured its bridge."""

    chosen_ids: bool = True
    hold_after_timeout: bool = False
    fickle_hook: bool = False

    @functools.cached_property
    def settings(self) -> Settings:
        """The same as a configuration file."""
        slurm = {**SETTINGS["slurm"], **({} if self.chosen_ids else {"job_ids": None})}
        ends = {"after_timeout": {"default": "hold" if self.hold_after_timeout else "resubmit"}}
        return Settings.model_validate({**SETTINGS, "slurm": slurm, "ends": ends})


class Fickle:
    """A hook of a site that is hard to please; what it says of a pod follows from the pod's uid."""

    def subset(
        self, _session: base.Session, _ask: base.Ask, tasks: tuple[Pod, ...], nodes: base.Nodes, /
    ) -> base.Subsets:
        """Most pods go to one half of the nodes first, then to the other."""
        uid = tasks[0].uid
        # Half of the nodes might be too few for many pods, and then they would wait for ever.
        if _dice("subset", uid) % 3 == 0 or len(tasks) > FEW:
            return base.Subsets(relevant=False)
        ordered = sorted(nodes, key=lambda node: _dice(uid, node))
        halves = [frozenset(ordered[::2]), frozenset(ordered[1::2])]
        return base.Subsets(sets=tuple(base.NodeSet(nodes=half) for half in halves if half))

    def commit(self, session: base.Session, ask: base.Ask, /) -> base.Admit | Wait:
        """Some have to wait now and then."""
        if _dice("commit", ask.workload.root.uid) % 5 == 0 and int(session.now) // 7 % 2 == 0:
            return Wait(reason="Fickle", message="not now", retry_after=3.0)
        return base.GO

    def verify(
        self, _session: base.Session, _workload: Workload, nodes: Mapping[str, str], /
    ) -> base.Admit | base.Deny:
        """Some dislike one of the nodes."""
        bad = [node for uid, node in nodes.items() if node == f"n{_dice('verify', uid) % 8}"]
        return base.Deny(nodes=frozenset(bad), message="not there") if bad else base.GO


#: So many pods find room on half of the nodes, whoever else is there.
FEW = 2


def _dice(*words: str) -> int:
    return hashlib.blake2b("".join(words).encode(), digest_size=2).digest()[0]


class Uncounted:
    """Counts nothing."""

    def attempt(self, result: str) -> None:
        """Nobody asks."""

    def bound(self, pod: Pod, waited: float | None) -> None:
        """Nobody asks."""

    def ended(self, reason: str) -> None:
        """Nobody asks."""


class RealBrain:
    """The core as the program builds it, with its voice beside it."""

    def __init__(
        self,
        variant: Variant,
        cluster: ports.Cluster,
        slurm: ports.Slurm,
        clock: ports.Clock,
        objects: known.Known,
    ) -> None:
        around = chain.Surroundings(
            clock=clock,
            dice=random.Random(4),
            settle=configuration.settle(),
            limits=configuration.attempt_limits(variant.settings),
        )
        outside = brain.Outside(
            cluster=cluster,
            slurm=slurm,
            clock=clock,
            dice=random.Random(3),
            known=objects,
            tally=Uncounted(),
            around=around,
        )
        built = brain.build(variant.settings, outside)
        self._core, self._voice = built.core, built.reporter
        if variant.fickle_hook:
            config = self._core.tools.config
            hooks = (*config.chain.hooks, calls.Hook(name="fickle", hook=Fickle()))
            self._core.configure(dataclasses.replace(config, chain=chain.Chain(hooks, around)))
        self.on_pod, self.on_other_pod = self._core.on_pod, self._core.on_other_pod
        self.on_node, self.on_owner = self._core.on_node, self._core.on_owner
        self.on_kinds = self._core.on_kinds
        self.recover, self.schedule_step = self._core.recover, self._core.schedule_step

    def mirror_step(self) -> None:
        """What the mirror's thread does."""
        self._core.mirror_step()
        self._core.tell_step()

    def status_step(self) -> bool:
        """What the reporter's thread does."""
        return self._voice.step()


def build(variant: Variant) -> Build:
    """Makes the brains of such a site's daemons."""
    return functools.partial(RealBrain, variant)


real = build(Variant())
