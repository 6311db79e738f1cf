"""Topology spread constraints: how evenly pods have to lie over zones, racks or nodes."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from slurm_bridge.model import selectors
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.selectors import Requirement

HARD = "DoNotSchedule"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SpreadConstraint:
    """One constraint; a selector of None counts no pod, and an empty one none but the pod that has the constraint.

    `minimum_domains`: with fewer domains than this the emptiest one counts as empty. `honor_affinity`, `honor_taints`:
    nodes that the pod's node affinity, or its tolerations, rule out do not count. `everywhere`: a wish by which nodes
    without the label are rated as well.
    """

    topology_key: str
    max_skew: int
    hard: bool
    selector: tuple[Requirement, ...] | None
    minimum_domains: int = 1
    honor_affinity: bool = True
    honor_taints: bool = False
    everywhere: bool = False

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether a pod with these labels counts."""
        return self.selector is not None and selectors.all_hold(self.selector, labels)


def constraints(pod: Pod, *, hard: bool) -> tuple[SpreadConstraint, ...]:
    """Those that must hold, or those that are wishes."""
    every = (_constraint(written, pod) for written in pod.spec.topology_spread_constraints)
    return tuple(one for one in every if one.hard is hard)


def _constraint(written: Mapping[str, Any], pod: Pod) -> SpreadConstraint:
    return SpreadConstraint(
        topology_key=written.get("topologyKey", ""),
        max_skew=int(written.get("maxSkew", 1)),
        hard=written.get("whenUnsatisfiable", HARD) == HARD,
        selector=_selector(written, pod),
        minimum_domains=int(written.get("minDomains") or 1),
        honor_affinity=written.get("nodeAffinityPolicy", "Honor") == "Honor",
        honor_taints=written.get("nodeTaintsPolicy", "Ignore") == "Honor",
    )


def _selector(written: Mapping[str, Any], pod: Pod) -> tuple[Requirement, ...] | None:
    """With the pod's own values of `matchLabelKeys`; newer API servers have merged them into the selector already."""
    selector = selectors.read(written.get("labelSelector"))
    if selector is None:
        return None
    labels = pod.metadata.labels
    own = (Requirement(key, "In", (labels[key],)) for key in written.get("matchLabelKeys") or () if key in labels)
    return (*selector, *own)
