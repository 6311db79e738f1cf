"""Which hooks are measured: the chain without any family, and each family alone."""

import dataclasses
from collections.abc import Mapping

from hooksbench.families import EVERY_HOOK
from slurm_bridge.hooks.registry import HookConfig


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """Configured hooks. `threads`: what works beside the passes has threads; without, it is done within them.

    `judged`: the goals are set for it.
    """

    name: str
    hooks: tuple[HookConfig, ...] = ()
    threads: bool = False
    judged: bool = True


#: With policy and eligibility only, which are part of every chain: what the framework itself costs.
FRAMEWORK = Contestant(name="framework alone")

#: All standard predicates and priorities, on every node.
KUBE_SCHEDULER = Contestant(name="kube-scheduler", hooks=(HookConfig(name="kube-scheduler"),))

#: A pod whose sample had no node for it is sampled again at once: a pause would be measured, and is no work.
_AT_ONCE = {"backoff_seconds": 0.001, "max_backoff_seconds": 0.001}
_VELA = HookConfig(name="vela", options=_AT_ONCE)
_EVERY = {str(one["name"]): HookConfig(name=str(one["name"]), options=one.get("options", {})) for one in EVERY_HOOK}
_WHOLE = HookConfig(name="vela", options={**_AT_ONCE, "clusters_percent": 100, "nodes_bp": 10_000})

CONTESTANTS: Mapping[str, Contestant] = {
    one.name: one
    for one in (
        FRAMEWORK,
        KUBE_SCHEDULER,
        Contestant(name="vela", hooks=(_VELA,)),
        Contestant(name="vela, threads", hooks=(_VELA,), threads=True),
        # What sampling saves: no configuration for a real cluster.
        Contestant(name="vela, every node", hooks=(_WHOLE,)),
        # No goals: a kai that has nothing to say to a single pod, queues that are never full, and all together.
        Contestant(name="kai, no gangs", hooks=(_EVERY["kai"],), judged=False),
        Contestant(name="yunikorn", hooks=(_EVERY["yunikorn"],), judged=False),
        Contestant(name="all families", hooks=tuple(_EVERY.values()), judged=False),
    )
}
