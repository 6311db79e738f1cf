"""The one place that knows how a core is made: by the program's own builder, with settings of the simulation."""

import dataclasses
import functools
import hashlib
import random
from collections.abc import Mapping
from typing import Any

from slurm_bridge import errors, ports
from slurm_bridge.daemon import assembly, configuration, reload
from slurm_bridge.hooks import base, calls, chain
from slurm_bridge.hooks.services import ChainServices
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import Workload
from slurm_bridge.scheduler.context import Config
from slurm_bridge.settings.model import Settings
from slurm_bridge.workloads import known
from tests.simulation import families, groups
from tests.simulation.observer import CLUSTER_ID
from tests.simulation.process import Build, Views

#: What is lost is found, and what backs off comes back, within the patience of a run.
SETTINGS: dict[str, Any] = {
    "cluster_id": CLUSTER_ID,
    "slurm": {
        "url": "http://slurm",
        "plain_http": True,
        "token_file": "token",
        "job_ids": {"first": 50_000_000, "last": 66_999_999},
    },
    "hooks": [{"name": "policy"}, {"name": "eligibility", "options": {"volumes": False}}],
    # Time stands still while Slurm answers. Without this jobs that run would be asked for at every step, and nearly all
    # work of a simulation would be the same answer.
    "mirror": {"sweep_seconds": 45, "cpu_share": 0.0005},
    "attempts": {"window_seconds": 6},
    "workloads": {"bind_seconds": int(groups.BIND_SECONDS)},
    "scheduling": {"backoff_most_seconds": 30, "avoid_seconds": 60},
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Variant:
    """How a site has configured its bridge. `families` are those of `families.KNOWN`, in order."""

    chosen_ids: bool = True
    hold_after_timeout: bool = False
    fickle_hook: bool = False
    families: tuple[str, ...] = ()
    dreaming: bool = False

    @functools.cached_property
    def settings(self) -> Settings:
        """The same as a configuration file."""
        slurm = {**SETTINGS["slurm"], **({} if self.chosen_ids else {"job_ids": None})}
        ends = {"after_timeout": {"default": "hold" if self.hold_after_timeout else "resubmit"}}
        hooks = [*SETTINGS["hooks"], *(families.KNOWN[name] for name in self.families)]
        return Settings.model_validate({**SETTINGS, "slurm": slurm, "ends": ends, "hooks": hooks})


class Site:
    """A variant as a file, which every daemon reads when it starts, and looks at again and again."""

    def __init__(self, variant: Variant) -> None:
        self.variant = variant

    def write(self, **changes: Any) -> None:
        """An operator changes it."""
        self.variant = dataclasses.replace(self.variant, **changes)


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
        # By name where the dice say the same: a set has no order that another process would repeat.
        ordered = sorted(nodes, key=lambda node: (_dice(uid, node), node))
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


#: So many pods find room on half of the nodes, beside all others.
FEW = 2


def _dice(*words: str) -> int:
    return hashlib.blake2b("".join(words).encode(), digest_size=2).digest()[0]


class Uncounted:
    """Counts nothing."""

    def looked(self, seconds: float) -> None:
        pass

    def attempt(self, result: str) -> None:
        pass

    def surprise(self, where: str) -> None:
        pass

    def bound(self, pod: Pod, by: Placeholder) -> None:
        pass

    def ended(self, reason: str) -> None:
        pass

    def resized(self) -> None:
        pass


class RealBrain:
    """The core as the program builds it, with its voice beside it."""

    def __init__(
        self,
        site: Site,
        cluster: ports.Cluster,
        slurm: ports.Slurm,
        clock: ports.Clock,
        objects: known.Known,
        views: Views,
    ) -> None:
        around = ChainServices(
            clock=clock,
            dice=random.Random(4),
            settle=configuration.settle(),
            limits=configuration.attempt_limits(site.variant.settings),
            threads=False,
        )
        outside = assembly.CoreInputs(
            cluster=cluster,
            slurm=slurm,
            clock=clock,
            dice=random.Random(3),
            known=objects,
            counters=Uncounted(),
            around=around,
            views=views,
        )
        built = assembly.build(site.variant.settings, outside)
        self._core, self._voice, self._around, self._views = built.core, built.reporter, built.around, views
        self._site, self._dreamers = site, list[families.Dreamer]()
        self._reload = reload.Reload(
            site.variant.settings,
            reload.SettingsReader(fingerprint=lambda: repr(site.variant), load=lambda: site.variant.settings),
            reload.Use(apply=self._apply, told=lambda _result, _text: None),
            clock,
        )
        if site.variant.fickle_hook or site.variant.dreaming:
            self._core.configure(self._with_own(self._core.context.config))
        self.on_pod, self.on_other_pod = self._core.on_pod, self._core.on_other_pod
        self.on_node, self.on_owner = self._core.on_node, self._core.on_owner
        self.on_kinds, self.on_surroundings = self._core.on_kinds, self._core.on_surroundings
        self.recover = self._core.recover

    def _with_own(self, config: Config) -> Config:
        """With the hooks of this site, which are in no package."""
        variant, hooks = self._site.variant, list(config.chain.hooks)
        if variant.fickle_hook:
            hooks.append(calls.Hook(name="fickle", hook=Fickle()))
        if variant.dreaming:
            self._dreamers.append(families.Dreamer(self._around.clock, self._around.wake))
            hooks.append(calls.Hook(name="dreamer", hook=self._dreamers[-1]))
        made = chain.Chain(hooks, self._around)
        made.see(self._views(made.needs))
        return dataclasses.replace(config, chain=made)

    def _apply(self, settings: Settings) -> None:
        """As the daemon does: checked, seen, swapped, and the old one closed."""
        config = self._with_own(configuration.changeable(settings, self._around))
        if not all(view.synced for view in self._views(config.chain.needs).values()):
            config.chain.close()
            raise errors.BadConfiguration("what the hooks need to see could not be listed")
        old = self._core.context.config.chain
        self._core.configure(config)
        old.close()

    def schedule_step(self) -> bool:
        """What the scheduler's thread does, and those of hooks before it."""
        for dreamer in self._dreamers:
            dreamer.go_on()
        return self._core.schedule_step()

    def mirror_step(self) -> None:
        """What the threads do that look at Slurm, and at the configuration."""
        self._reload.step()
        self._core.mirror_step()
        self._core.preempt_step()
        self._core.tell_step()

    def status_step(self) -> bool:
        """What the reporter's thread does."""
        return self._voice.step()


def build(variant: Variant | Site) -> Build:
    """Makes the brains of such a site's daemons."""
    return functools.partial(RealBrain, variant if isinstance(variant, Site) else Site(variant))


real = build(Variant())
