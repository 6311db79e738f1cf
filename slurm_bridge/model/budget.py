"""Disruption budgets: how many of the selected pods may be evicted at a time."""

from slurm_bridge.model.meta import Object, Record


class BudgetSpec(Record, frozen=True, kw_only=True):
    """The pods that it protects; a selector of None selects none."""

    selector: dict[str, object] | None = None


class BudgetStatus(Record, frozen=True, kw_only=True):
    """How many may be evicted now, as the cluster counted last."""

    disruptions_allowed: int = 0


class PodDisruptionBudget(Object, frozen=True, kw_only=True):
    """One budget."""

    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()
