"""Which changes of a pod are worth a look. Pure."""

from slurm_bridge.model.pod import Pod


def regrouped(old: Pod, new: Pod) -> bool:
    """What a pod says of itself has changed: perhaps to whom it belongs, too."""
    before, now = old.metadata, new.metadata
    return not new.bound and (
        (before.labels, before.annotations, before.owner_references)
        != (now.labels, now.annotations, now.owner_references)
    )


def matters(old: Pod | None, new: Pod) -> bool:
    """Whether a change of a pod can change what follows for it; what kubelets report of a running pod cannot."""
    if old is None or old.bound != new.bound or old.terminal != new.terminal or old.terminating != new.terminating:
        return True
    if new.bound:
        return False
    return old.spec != new.spec or old.gated != new.gated or regrouped(old, new)
