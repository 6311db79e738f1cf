"""The configured rules of translation: the defaults, and the names of devices in Slurm."""

import dataclasses
from collections.abc import Callable, Mapping

from slurm_bridge.model.job import Gres
from slurm_bridge.model.workload import Workload
from slurm_bridge.translate import forms, gres
from slurm_bridge.translate.forms import ValueForm

#: Kubernetes' extended resources and the GRES name, or name:type, that one of each is.
DEVICES: Mapping[str, str] = {"nvidia.com/gpu": "gpu", "amd.com/gpu": "gpu"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Defaults for what neither the pod nor an annotation sets; None leaves it to Slurm.

    `parts_of` names, by the uids of pods, the parts of a gang that have to have nodes of their own; `devices_of` says
    likewise what their ResourceClaims ask for in a partition. `class_gres` are further resources for `gres_names`, of
    which DeviceClasses are behind. Raises ValueError with every default that no job could have, so that rules are
    always valid.
    """

    cluster_id: str
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    gres: str | None = None
    timelimit: int | None = None
    exclusive: bool = False
    one_per_node: bool = False
    mcs_label: str | None = None
    cpus: int = 1
    memory_mib: int = 512
    count: str = "requests"
    user: str | None = None
    group: str | None = None
    environment: bool = False
    gres_names: Mapping[str, str] = dataclasses.field(default_factory=lambda: DEVICES)
    parts_of: Callable[[Workload], Mapping[str, str]] = dataclasses.field(default=lambda _workload: {}, compare=False)
    class_gres: Callable[[], Mapping[str, str]] = dataclasses.field(default=dict[str, str], compare=False)
    devices_of: Callable[[Workload, str | None], Mapping[str, tuple[Gres, ...]]] = dataclasses.field(
        default=lambda _workload, _partition: {}, compare=False
    )

    def __post_init__(self) -> None:
        problems: list[str] = []
        for field, form in FORMS.items():
            value = getattr(self, field)
            try:
                form.parse("" if value is None else str(value))
            except ValueError:
                if value is not None:
                    problems.append(f"default {field} {value!r}: use {form.words}")
        for resource, name in self.gres_names.items():
            try:
                gres.parse_kind(name)
            except ValueError as error:
                problems.append(f"gres of {resource}: {error}")
        if problems:
            raise ValueError("; ".join(problems))


#: The forms of the annotations that a default replaces.
FORMS: Mapping[str, ValueForm] = {
    "partition": forms.NAMES,
    "account": forms.NAME,
    "qos": forms.NAME,
    "gres": forms.GRES,
    "timelimit": forms.MINUTES,
    "mcs_label": forms.NAME,
    "cpus": forms.CPUS,
    "memory_mib": forms.COUNT,
    "user": forms.PERSON,
    "group": forms.PERSON,
}
