"""The keys of YuniKorn's first design, which are not read any more, and what each of them is called now."""

from collections.abc import Iterator, Mapping, Sequence

from slurm_bridge.families.yunikorn.queues.config.problems import QueueProblem

#: By the old word.
HINTS: Mapping[str, str] = {
    "capacity": "it is called `resources.guaranteed`, amounts by type",
    "max-capacity": "it is called `resources.max`, amounts by type",
    "mapping-policies": "it is called `placementrules`, a list beside the `queues` of a partition",
    "configs": "its fields stand beside the `name` of the queue",
    "acls": "it is called `submitacl` and `adminacl`, texts such as 'user1,user2 group1'",
    "childrens": "it is called `queues`, a list of whole queues within their parent",
}

#: Keys of later versions that YuniKorn has ceased to read, or that it sets itself.
IGNORED = frozenset({"statedumpfilepath", "checksum"})

#: Lists that were maps of names, by their field.
LISTS: Mapping[str, str] = {
    "queues": "it is a list of queues, `- name: root`, each within the `queues` of its parent",
}


def within(value: object, where: str) -> Iterator[QueueProblem]:
    """Every old word at or below a place that is not read any further."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            place = f"{where}.{key}"
            if key in HINTS:
                yield QueueProblem(code="seed_spelling", field=place, there="is an old name", allowed=HINTS[key])
            yield from within(inner, place)
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for number, inner in enumerate(value):
            yield from within(inner, f"{where}[{number}]")
