"""The configured rules of translation: the defaults, and the names of devices in Slurm."""

import dataclasses
from collections.abc import Iterator, Mapping

from slurm_bridge.translate import forms, gres
from slurm_bridge.translate.forms import ValueForm

#: Kubernetes' extended resources and the GRES name, or name:type, that one of each is.
DEVICES: Mapping[str, str] = {"nvidia.com/gpu": "gpu", "amd.com/gpu": "gpu"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Defaults for what neither the pod nor an annotation sets; None leaves it to Slurm.

    Raises ValueError with every default that no job could have, so that rules are always valid.
    """

    cluster_id: str
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    gres: str | None = None
    timelimit: int | None = None
    exclusive: bool = False
    mcs_label: str | None = None
    cpus: int = 1
    memory_mib: int = 512
    count: str = "requests"
    user: str | None = None
    group: str | None = None
    gres_names: Mapping[str, str] = dataclasses.field(default_factory=lambda: DEVICES)

    def __post_init__(self) -> None:
        if problems := [*_wrong_defaults(self), *_wrong_devices(self.gres_names)]:
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


def _wrong_defaults(rules: Rules) -> Iterator[str]:
    for field, form in FORMS.items():
        value = getattr(rules, field)
        try:
            form.parse("" if value is None else str(value))
        except ValueError:
            if value is not None:
                yield f"default {field} {value!r}: allowed is {form.words}"


def _wrong_devices(names: Mapping[str, str]) -> Iterator[str]:
    for resource, name in names.items():
        try:
            gres.parse_kind(name)
        except ValueError as error:
            yield f"gres of {resource}: {error}"
