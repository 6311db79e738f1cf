"""The keys of admission: which namespaces are managed, and what the webhook does."""

from typing import Annotated, Literal

import pydantic
from pydantic import AfterValidator

from slurm_bridge.admission import rules
from slurm_bridge.model import selectors
from slurm_bridge.settings.kinds import Label, Name, SettingsGroup

#: Their pods belong to the cluster itself.
SYSTEM_NAMESPACES = ("kube-system", "kube-public", "kube-node-lease")


def _selector(text: str) -> str:
    selectors.parse(text)
    return text


def _no_system(name: str) -> str:
    if name in SYSTEM_NAMESPACES:
        raise ValueError("belongs to the cluster itself: its pods have to start before any scheduler of Slurm does")
    return name


Managed = Annotated[Label, AfterValidator(_no_system)]
Selector = Annotated[str, AfterValidator(_selector)]


class AdmissionSettings(SettingsGroup):
    """What the admission webhook does; see `docs/admission.md`."""

    enabled: bool = False
    """Whether the daemon serves the webhook. `run --only webhook` serves it in any case. It needs `web.tls`."""
    on_error: Literal["deny", "allow"] = "deny"
    """What happens to an object of the bridge that cannot be reviewed because of an error in the webhook. Objects of \
others are allowed in any case."""
    accounts: tuple[Name, ...] = ("system:serviceaccount:slurm-bridge-system:slurm-bridge",)
    """Patterns of users that may write the labels and annotations that only the bridge writes: the daemon, programs \
that restore pods from a backup."""
    controllers: tuple[Name, ...] = rules.CONTROLLERS
    """Patterns of users that create objects for others. What these create belongs to the creator of its owner."""
    trust_created_by: bool = False
    """Whether the annotation `created-by` says whose a workload is. Only where the webhook, with `failurePolicy: \
Fail`, has reviewed every object that exists: it refuses forged values."""


def served(given: AdmissionSettings, settings: pydantic.ValidationInfo) -> AdmissionSettings:
    """The API server calls webhooks over HTTPS only."""
    web = settings.data.get("web")
    if given.enabled and web is not None and web.tls is None:
        raise ValueError("needs web.tls, because the API server calls webhooks over HTTPS only")
    return given


def unmanaged_of_itself(names: tuple[str, ...], settings: pydantic.ValidationInfo) -> tuple[str, ...]:
    """The daemon cannot schedule itself."""
    election = settings.data.get("leader_election")
    if election is not None and election.namespace in names:
        raise ValueError(f"has {election.namespace}, the namespace of the bridge: it cannot schedule itself")
    return names
