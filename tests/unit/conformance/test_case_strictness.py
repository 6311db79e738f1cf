"""No adapter overlooks a field: wherever one is added to a case that passes, the case fails."""

import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import adapters, loading
from tests.conformance.loading import Case, Fields, Malformed

#: Maps whose keys are data, such as names of labels, resources or nodes: what is added there is one more of them. A
#: name with an operation before it is data there only; `[]` is each of a list.
DATA: Mapping[str, frozenset[str]] = {
    "kai": frozenset(
        {
            *"free idle labels releasing requested resources sets total used".split(),
            *("accounting tasks[]", "node_sets tasks[]"),
        }
    ),
    "kube": frozenset({"conditions", "labels", "node_selector", "scalars", "scores"}),
    "vela": frozenset({"available", "last_pod_added", "limits", "requests", "scores", "total"}),
    "yunikorn": frozenset(
        {
            *"allocated available capacity fair_max guaranteed larger left max other pending queue_resource".split(),
            *"resource right smaller tags total types weights maxresources resourceweights".split(),
            *"placeholders preemptable preempting remaining used".split(),
            *("ask_queue_under_guaranteed ask", "victim_queue_over_guaranteed ask"),
        }
    ),
}

Place = tuple[str | int, ...]


def places(value: object, place: Place = ()) -> Iterator[Place]:
    """Where in a case there are maps."""
    if isinstance(value, dict):
        yield place
        for key, inner in value.items():
            yield from places(inner, (*place, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from places(inner, (*place, number))


def is_data(case: Case, place: Place) -> bool:
    """Whether what is there are names and amounts, and not fields that an adapter has to know."""
    last = place[-1] if isinstance(place[-1], str) else f"{place[-2]}[]"
    return place[0] == "given" and not DATA[case.family].isdisjoint({last, f"{case.given.get('op')} {last}"})


def with_more(case: Case, place: Place) -> Mapping[str, Any]:
    """The case with a field that nobody knows at this place."""
    record = copy.deepcopy({"given": case.given, "expect": case.expect})
    there: Any = record
    for key in place:
        there = there[key]
    there["nobody_knows"] = 1
    return record


def passes(case: Case, record: Mapping[str, Any]) -> bool:
    """Whether it is a case that the hooks fulfil."""
    given, expect = Fields(record["given"], "given"), Fields(record["expect"], "expect")
    try:
        adapters.check(case.family, case.file)(given, expect)
        loading.finish(given, expect)
    except (Malformed, AssertionError):
        return False
    return True


@pytest.mark.thorough
@pytest.mark.parametrize("path", loading.files(loading.OWN), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_an_unknown_field_fails_wherever_it_is(path: Path) -> None:
    """In every record of every case, on both sides."""
    for case in loading.cases(path):
        record = {"given": case.given, "expect": case.expect}
        found = [place for place in places(record) if place and not is_data(case, place)]
        assert [place for place in found if passes(case, with_more(case, place))] == [], case.where
