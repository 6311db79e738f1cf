"""What must hold of whatever leaves the bridge, written down a second time: nothing here asks the product."""

import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from tests.fuzz.generators import Json
from tests.fuzz.strangers import HOSTILE, VICTIM

#: The longest message.
MOST_LETTERS = 1024

#: What policy allows in these cases, by namespace and the field of the submit; everything else is refused.
POLICY: Json = {
    "rules": [
        {
            "namespaces": [VICTIM],
            "allow": {"account": ["physics"], "user-id": ["ann", "1001"], "priority": {"max": 1000}},
        },
        {"namespaces": [HOSTILE], "allow": {"qos": ["normal"], "partition": ["debug"]}},
    ]
}
_ALLOWED: Mapping[str, Mapping[str, object]] = {
    VICTIM: {"account": {"physics"}, "user_id": {"ann", "1001"}, "priority": 1000},
    HOSTILE: {"qos": {"normal"}, "partition": {"debug"}},
}
_GUARDED = ("account", "qos", "reservation", "wckey", "user_id", "group_id", "priority")
_SYSTEM = frozenset("root nobody nogroup slurm munge daemon bin sys sync systemd-network sshd www-data".split())

#: Slurm's own numbers end here.
MOST, MOST_SHORT = 4_294_967_293, 65_533
#: No machine has more, in MiB.
MOST_MEMORY = 2**43
_BOUNDS: Mapping[str, int] = {
    "tasks": MOST,
    "minimum_cpus": MOST,
    "cpus_per_task": MOST_SHORT,
    "minimum_nodes": MOST,
    "maximum_nodes": MOST,
    "nice": MOST,
}


def unprintable(text: str) -> bool:
    """It has letters that move a cursor, end a line or change a direction."""
    return any(unicodedata.category(letter) in ("Cc", "Cf", "Zl", "Zp", "Cs") for letter in text)


def message(where: str, text: str) -> Iterator[str]:
    """A message of the program."""
    if len(text) > MOST_LETTERS:
        yield f"message: {where} has more than {MOST_LETTERS} letters"
    if unprintable(text):
        yield f"message: {where} has control characters"


def submitted(body: Json, namespaces: set[str]) -> Iterator[str]:
    """One submit, for pods of these namespaces."""
    for component in body.get("jobs") or [body["job"]]:
        yield from _clean(component)
        yield from _bounded(component)
        for namespace in namespaces:
            yield from _permitted(component, namespace)


def _clean(component: Json) -> Iterator[str]:
    for field, value in component.items():
        if isinstance(value, str) and unprintable(value):
            yield f"acceptance: control characters in the job's {field}"
    if not component.get("name") or len(component["name"]) > MOST_LETTERS:
        yield "acceptance: the job's name is empty or too long"
    if len(component["admin_comment"].encode()) > 2048:
        yield "acceptance: an owner record of more than 2 KiB"


def _bounded(component: Json) -> Iterator[str]:
    for field, most in _BOUNDS.items():
        value = component.get(field)
        if value is not None and not 0 <= value <= most:
            yield f"acceptance: {field} out of bounds"
    memory = _number(component.get("memory_per_node") or component.get("memory_per_cpu"))
    if memory is not None and not 1 <= memory <= MOST_MEMORY:
        yield "acceptance: memory out of bounds"
    limit = _number(component.get("time_limit"))
    if limit is not None and not 1 <= limit <= 71_582_788:
        yield "acceptance: time_limit out of bounds"
    for part in (component.get("tres_per_node") or component.get("tres_per_task") or "").split(","):
        count = part.rpartition(":")[2].rpartition("=")[2]
        if count.isdecimal() and not 1 <= int(count) <= MOST:
            yield "acceptance: a gres count out of bounds"


def _number(value: Any) -> int | None:
    if isinstance(value, Mapping):
        return value["number"] if value.get("set") else None
    return value


def _permitted(component: Json, namespace: str) -> Iterator[str]:
    allowed = _ALLOWED.get(namespace, {})
    for field in _GUARDED:
        value = component.get(field)
        if value is not None and not _is_allowed(value, allowed.get(field)):
            yield f"acceptance: {field} that policy refuses to the namespace of a member"
    parts = allowed.get("partition")
    named = [name for name in (component.get("partition") or "").split(",") if name]
    if isinstance(parts, set) and not parts.issuperset(named):
        yield "acceptance: partition that policy refuses to the namespace of a member"
    person = str(component.get("user_id") or "")
    if person.lower() in _SYSTEM or (person.isdecimal() and int(person) < 1000):
        yield "acceptance: a user of the system"


def _is_allowed(value: Any, allowed: object) -> bool:
    if isinstance(allowed, int):
        return (_number(value) or 0) <= allowed
    return isinstance(allowed, set) and str(value) in allowed
