"""Disruption budgets: how many of some pods may be made to go at a time."""

from slurm_bridge.model.meta import Object, Record


class BudgetSpec(Record, frozen=True, kw_only=True):
    """Whom it protects; a selector of None selects nobody."""

    selector: dict[str, object] | None = None


class BudgetStatus(Record, frozen=True, kw_only=True):
    """How many may go now, as the cluster counted last."""

    disruptions_allowed: int = 0


class PodDisruptionBudget(Object, frozen=True, kw_only=True):
    """One budget."""

    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()
