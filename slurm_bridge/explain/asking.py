"""What is explained, and with what: the same for all who take part in an explanation."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from slurm_bridge import ports
from slurm_bridge.explain.looking import Glance
from slurm_bridge.hooks.attempts import PlanState
from slurm_bridge.hooks.chain import Chain
from slurm_bridge.hooks.services import ChainServices
from slurm_bridge.model.job import JobRequest, JobView, Phase
from slurm_bridge.model.workload import Workload
from slurm_bridge.scheduler import wish as wishes
from slurm_bridge.scheduler.ids import IdRange
from slurm_bridge.scheduler.state import Wish
from slurm_bridge.translate import digest
from slurm_bridge.translate.rules import Rules
from slurm_bridge.translate.translator import Translated

#: The body of a submission; ValueError says what Slurm would silently have cast.
Write = Callable[[JobRequest], Mapping[str, object]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What an explanation is made with: the configuration as the daemon uses it.

    `glance` is what `around` shows to hooks that look at the cluster beside the pass.
    """

    rules: Rules
    chain: Chain
    around: ChainServices
    glance: Glance
    ids: IdRange | None
    write: Write
    clock: ports.Clock


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the hooks are asked about, and with what."""

    workload: Workload
    translated: Translated
    means: Means
    jobs: Sequence[JobView]

    @property
    def wish(self) -> Wish:
        """As the scheduler has it."""
        intent = digest.intent(self.translated, wishes.retry(self.workload))
        return Wish(workload=self.workload, translated=self.translated, intent=intent)


def running(jobs: Sequence[JobView]) -> PlanState | None:
    """The attempt at nodes that the placeholder stands for, as its owner record says."""
    found = alive(jobs)
    return PlanState.of_running(found.owner.plan) if found is not None and found.owner is not None else None


def alive(jobs: Sequence[JobView] | None) -> JobView | None:
    """The last one that has not ended."""
    return next((view for view in reversed(jobs or ()) if view.state.phase is not Phase.ENDED), None)
