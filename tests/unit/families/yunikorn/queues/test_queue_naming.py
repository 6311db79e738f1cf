"""Records are renamed field by field, which is fast, and forgets what is added later: each field is looked at here."""

import dataclasses
from typing import Any

import pytest

from slurm_bridge.families.yunikorn.queues import partition_names, records
from slurm_bridge.families.yunikorn.queues.partition_names import Names

HERE = partition_names.normalised("rm", "here")


def filled(kind: type[Any], **given: Any) -> Any:
    """One whose every field holds a thing of its own, whatever fields there are."""
    others = {field.name: object() for field in dataclasses.fields(kind) if field.name not in given}
    return kind(**others, **given)


@pytest.mark.parametrize(
    ("kind", "renamed"),
    [(records.AllocationAsk, partition_names.ask_in), (records.Application, partition_names.application_in)],
)
def test_a_renamed_record_differs_in_its_partition_only(kind: type[Any], renamed: Any) -> None:
    """Whatever else it has."""
    one = filled(kind, partition="here")
    assert renamed("there", one) == dataclasses.replace(one, partition="there")


def test_a_subject_outside_differs_in_its_partition_only() -> None:
    """Whatever else it has."""
    one = filled(records.AnswerSubject, partition=HERE)
    assert partition_names.subject_outside("rm", one) == dataclasses.replace(one, partition="here")


def test_a_question_outside_asks_all_that_it_asks_inside() -> None:
    """About the ask and those who would be gone, by the names that the manager knows."""
    ask, gone = filled(records.AllocationAsk, partition=HERE), filled(records.AskId, partition=HERE)
    one = filled(records.FitQuestion, ask=ask, without=(gone,))
    expected = dataclasses.replace(
        one, ask=partition_names.ask_in("here", ask), without=(dataclasses.replace(gone, partition="here"),)
    )
    assert Names("rm").question(one) == expected


def test_every_part_of_a_request_comes_inside() -> None:
    """None of its fields is left behind."""
    ask, name = filled(records.AllocationAsk, partition="here"), filled(records.AskId, partition="here")
    given = {
        "asks": (ask,),
        "applications": (filled(records.Application, partition="here"),),
        "standing": (records.Allocation(ask=ask, nodes=("n",)),),
        "evicting": (filled(records.Eviction, victim=name, asker=None),),
        "releases": (filled(records.AllocationRelease, id=name),),
        "nodes": (filled(records.NodeReport, partition="here"),),
        "configuration": None,
        "rm": "rm",
        "terminated": True,
    }
    others = {field.name for field in dataclasses.fields(records.Update)} - given.keys()
    one = records.Update(**given, **dict.fromkeys(others, (name,)))
    inside = Names("rm").inside(one)
    for field in dataclasses.fields(records.Update):
        assert bool(getattr(inside, field.name)) is bool(getattr(one, field.name)), field.name
    assert {named.partition for field in others for named in getattr(inside, field)} == {HERE}


def test_an_ask_comes_out_as_it_went_in() -> None:
    """The manager hears of the very ask that it sent."""
    names, ask = Names("rm"), filled(records.AllocationAsk, partition="here")
    (inside,) = names.inside(records.Update(rm="rm", asks=(ask,))).asks
    assert names.question(filled(records.FitQuestion, ask=inside, without=())).ask is ask
