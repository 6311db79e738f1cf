"""Who checks which file: each family's adapters, and the forms of case files that each of them reads.

An adapter module has `FILES`: by form, a function of what is given and what is expected, two `Fields`. It asserts. A
form is the name of a file, `schedule`; further files of a form carry its name and more: `schedule-large.yaml`.
"""

import functools
import importlib
from collections.abc import Callable, Mapping

from tests.conformance.fields import Fields, Malformed

Check = Callable[[Fields, Fields], None]

#: The adapters of each family; an empty row is a family that is known by name and has no hooks yet.
FAMILIES: Mapping[str, tuple[str, ...]] = {
    "kai": ("kai_topology", "kai_allocation"),
    "kube": ("kube_predicates", "kube_priorities", "kube_preemption"),
    "vela": ("vela",),
    "yunikorn": (
        "yunikorn_arithmetic",
        "yunikorn_queues",
        "yunikorn_allocation",
        "yunikorn_config",
        "yunikorn_preemption",
    ),
}

#: What may stand between the name of a form and what a further file adds to it.
_JOINTS = ("-", "_", ".")


def check(family: str, file: str) -> Check:
    """The function that checks the cases of a file; Malformed names what there is when there is none for it."""
    if family not in FAMILIES:
        raise Malformed(f"{family}/{file}.yaml: the family {family} is unknown; there are {', '.join(FAMILIES)}")
    known = forms(family)
    found = form_of(file, known)
    if found is None:
        raise Malformed(f"{family}/{file}.yaml: no adapter reads it; {family} has {', '.join(sorted(known))}")
    return known[found]


@functools.cache
def forms(family: str) -> Mapping[str, Check]:
    """Every form that the family's adapters read."""
    return merged({name: importlib.import_module(f"tests.conformance.{name}").FILES for name in FAMILIES[family]})


def merged(adapters: Mapping[str, Mapping[str, Check]]) -> Mapping[str, Check]:
    """The forms of several adapters; Malformed when two of them claim the same."""
    owners: dict[str, str] = {}
    for adapter, offered in adapters.items():
        for form in offered:
            if form in owners:
                raise Malformed(f"{owners[form]} and {adapter} both read {form}.yaml")
            owners[form] = adapter
    return {form: function for offered in adapters.values() for form, function in offered.items()}


def form_of(file: str, known: Mapping[str, object]) -> str | None:
    """The longest form whose name the file carries; `priorities_0_100` carries `priorities_0_10` as little as not."""
    fitting = [form for form in known if file == form or file.startswith(tuple(form + joint for joint in _JOINTS))]
    return max(fitting, key=len, default=None)
