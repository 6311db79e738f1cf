"""Plain mappings become records; whatever cannot be read is named with its place."""

import pytest

from slurm_bridge import errors
from slurm_bridge.families.yunikorn.queues.config import parser, validation
from slurm_bridge.families.yunikorn.queues.config.documents import (
    Limit,
    NodeSort,
    PlacementRule,
    PreemptionDocument,
    QueueDocument,
    Template,
    UserFilter,
)
from slurm_bridge.families.yunikorn.queues.config.problems import CODES, ConfigurationRefused
from slurm_bridge.families.yunikorn.queues.config.properties import Stated
from slurm_bridge.families.yunikorn.queues.settings import SortPolicy
from tests.unit.families.yunikorn.queues.support_configs import codes, config, loaded, partition, problems, queue


def test_every_field_of_a_queue_has_its_place_in_the_record() -> None:
    """Nothing that may be written is lost."""
    written = queue(
        "a",
        queue("b"),
        parent=True,
        submitacl="ann dev",
        adminacl="*",
        maxapplications=3,
        resources={"guaranteed": {"vcore": "500m"}, "max": {"memory": "1Gi", "vcore": 2}},
        properties={"application.sort.policy": "fair"},
        childtemplate={"maxapplications": 1, "resources": {"max": {"memory": 5}}},
        limits=[{"limit": "mine", "users": ["ann"], "groups": ["dev"], "maxapplications": 2}],
    )
    assert parser.parse(config(partition(written | {"queues": [queue("b", maxapplications=1)]}))).problems == ()
    found = parser.parse(config(partition(written))).document.partitions[0].root.queues[0]
    assert found == QueueDocument(
        name="a",
        parent=True,
        submit_acl="ann dev",
        admin_acl="*",
        guaranteed={"vcore": 500},
        max={"memory": 2**30, "vcore": 2000},
        max_applications=3,
        properties=Stated(sort_policy=SortPolicy.FAIR),
        template=Template(max={"memory": 5}, max_applications=1),
        limits=(Limit(note="mine", users=("ann",), groups=("dev",), max_applications=2),),
        queues=(QueueDocument(name="b"),),
    )


def test_every_field_of_a_partition_has_its_place_in_the_record() -> None:
    """Placement rules, order of nodes and preemption among them."""
    read = loaded(
        queue("a", parent=True),
        name="gpu",
        placementrules=[
            {
                "name": "tag",
                "value": "namespace",
                "create": True,
                "parent": {"name": "fixed", "value": "a"},
                "filter": {"type": "deny", "users": ["ann"], "groups": ["dev"]},
            }
        ],
        nodesortpolicy={"type": "binpacking", "resourceweights": {"vcore": 2, "gpu": 0.5}},
        preemption={"enabled": False, "quotapreemptionenabled": True},
    )
    above = PlacementRule(name="fixed", value="a")
    chosen = UserFilter(kind="deny", users=("ann",), groups=("dev",))
    assert read.name == "gpu"
    assert read.rules == (PlacementRule(name="tag", value="namespace", create=True, parent=above, filter=chosen),)
    assert read.node_sort == NodeSort(policy="binpacking", weights={"vcore": 2.0, "gpu": 0.5})
    assert read.preemption == PreemptionDocument(enabled=False, quota=True)


def test_preemption_is_on_and_quota_preemption_off_where_nothing_is_said() -> None:
    """YuniKorn's defaults."""
    assert loaded(queue("a")).preemption == PreemptionDocument(enabled=True, quota=False)


@pytest.mark.parametrize("queues", [[queue("a")], [queue("a"), queue("b")], [queue("root"), queue("b")]])
def test_a_root_is_put_above_queues_that_have_none(queues: list[dict[str, object]]) -> None:
    """One queue that is not called root, or several."""
    root = parser.parse(config({"queues": queues})).document.partitions[0].root
    assert (root.name, [child.name for child in root.queues]) == ("root", [one["name"] for one in queues])


def test_the_root_is_called_root_in_any_case_and_is_a_parent() -> None:
    """Even without any queue below it: placement may make some."""
    root = parser.parse(config({"queues": [queue("ROOT")]})).document.partitions[0].root
    assert (root.name, root.leaf) == ("root", False)


def test_limits_of_the_partition_are_those_of_its_root() -> None:
    """Where the root has none of its own."""
    read = loaded(queue("a"), limits=[{"users": ["ann"], "maxapplications": 5}])
    assert read.root.limits == (Limit(users=("ann",), max_applications=5),)


def test_a_partition_without_a_name_is_called_default() -> None:
    """As in YuniKorn."""
    assert parser.parse(config({"queues": [queue("root")]})).document.partitions[0].name == "default"


@pytest.mark.parametrize(
    ("wrong", "code", "field"),
    [
        (queue("a", colour="red"), "unknown_field", "colour"),
        (queue("a", resources={"least": {}}), "unknown_field", "resources.least"),
        (queue("a", parent="yes"), "wrong_type", "parent"),
        (queue("a", submitacl=7), "wrong_type", "submitacl"),
        (queue("a", maxapplications=-1), "wrong_type", "maxapplications"),
        (queue("a", maxapplications=True), "wrong_type", "maxapplications"),
        (queue("a", queues="b"), "wrong_type", "queues"),
        (queue("a", resources=["max"]), "wrong_type", "resources"),
        (queue("a", limits=[{"users": [7], "maxapplications": 1}]), "wrong_type", "limits[0].users[0]"),
        (queue("a", resources={"max": {"nvidia.com/gpu": 1.5}}), "invalid_quantity", 'resources.max["nvidia.com/gpu"]'),
        (queue("a", resources={"max": {"vcore": True}}), "invalid_quantity", "resources.max.vcore"),
        (
            queue("a", childtemplate={"resources": {"max": {"memory": "5m"}}}),
            "invalid_quantity",
            "childtemplate.resources.max.memory",
        ),
        (queue("a", properties={"preemption.delay": 30}), "property_value", 'properties["preemption.delay"]'),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(wrong: dict[str, object], code: str, field: str) -> None:
    """Fields of the queue, and of everything within it."""
    found = problems(config(partition(queue("first"), wrong)))
    assert [(problem.code, problem.field) for problem in found] == [
        (code, f"partitions[0].queues[0].queues[1].{field}")
    ]


@pytest.mark.parametrize(
    ("odd", "code", "field", "there"),
    [
        ({"properties": {"colour": "red"}}, "property_unknown", "properties.colour", "is no property, and is ignored"),
        (
            {"parent": True, "childtemplate": {"properties": {"colour": "red"}}},
            "property_unknown",
            "childtemplate.properties.colour",
            "is no property, and is ignored",
        ),
        (
            {"resources": {"max": {"nvidia.com/gpu": 0}}},
            "max_zero",
            "resources.max",
            "has nothing but zeros, and is ignored, as YuniKorn does",
        ),
    ],
)
def test_what_yunikorn_ignores_is_a_warning_with_its_queue(
    odd: dict[str, object], code: str, field: str, there: str
) -> None:
    """The configuration is used without it."""
    found = loaded(queue("team", queue("first"), queue("a", **odd)))
    plain = loaded(queue("team", queue("first"), queue("a")))
    assert found.root.queues[0].queues[1].max is None is plain.root.queues[0].queues[1].max
    (warning,) = validation.load(config(partition(queue("team", queue("first"), queue("a", **odd))))).warnings
    assert (warning.code, warning.field) == (code, f"partitions[0].queues[0].queues[0].queues[1].{field}")
    assert warning.there == f"of queue root.team.a {there}"


def test_a_warning_of_an_unknown_property_has_the_known_ones() -> None:
    """So that a slip of the pen is seen."""
    (warning,) = validation.load(config(partition(queue("a", properties={"priority.ofset": "1"})))).warnings
    assert "priority.offset" in warning.allowed


def test_a_maximum_with_more_than_zeros_is_one() -> None:
    """A zero beside others forbids that type."""
    document = validation.load(config(partition(queue("a", resources={"max": {"vcore": "1", "gpu": 0}}))))
    assert document.warnings == ()
    assert document.partitions[0].root.queues[0].max == {"vcore": 1_000, "gpu": 0}


def test_fields_that_yunikorn_does_not_read_any_more_are_warnings() -> None:
    """They stand in files of earlier versions."""
    written = config(partition(queue("a"), statedumpfilepath="state.txt")) | {"checksum": "abc"}
    assert [(one.code, one.field) for one in validation.load(written).warnings] == [
        ("field_ignored", "partitions[0].statedumpfilepath"),
        ("field_ignored", "checksum"),
    ]


def test_a_warning_hides_no_problem_and_is_none() -> None:
    """Both are told."""
    parsed = parser.parse(config(partition(queue("a$", properties={"colour": "red"}))))
    assert [one.code for one in validation.problems(parsed)] == ["queue_name"]
    assert [one.code for one in parsed.document.warnings] == ["property_unknown"]


def test_a_problem_says_what_is_there_and_what_is_allowed() -> None:
    """In one line."""
    (found,) = problems(config(partition(queue("a", resources={"max": {"vcore": "ten"}}))))
    assert str(found) == (
        "partitions[0].queues[0].queues[0].resources.max.vcore: 'ten' is no amount of vcore; use digits with "
        "at most one of k M G T P E Ki Mi Gi Ti Pi Ei, m for vcore, up to 2^63 - 1 [invalid_quantity]"
    )


def test_an_unknown_field_is_answered_with_the_known_ones() -> None:
    """So that a slip of the pen is seen."""
    (found,) = problems(config(partition(queue("a", maxapps=3))))
    assert "maxapplications" in found.allowed


@pytest.mark.parametrize("mapping", [None, {}, {"partitions": []}, {"partitions": None}])
def test_a_configuration_has_partitions(mapping: object) -> None:
    """Nothing is no configuration."""
    assert codes(mapping) == ["partitions_missing"]


@pytest.mark.parametrize("mapping", [[], "partitions", 7])
def test_what_is_no_map_is_refused(mapping: object) -> None:
    """A list, a text, a number."""
    assert codes(mapping)[0] == "wrong_type"


def test_a_record_that_contains_itself_ends() -> None:
    """YAML can write such a thing with an alias."""
    endless = queue("a")
    endless["queues"] = [endless]
    assert "wrong_type" in codes(config(partition(endless)))


def test_a_value_that_is_left_empty_is_left_out() -> None:
    """YAML makes null of a key with nothing behind it."""
    assert loaded({"name": "a", "resources": None, "limits": None, "maxapplications": None}).root.queues == (
        QueueDocument(name="a"),
    )


def test_all_independent_problems_are_collected() -> None:
    """One round is enough to see them all."""
    wrong = partition(queue("a", colour="red", maxapplications="many"), queue("b", resources={"max": {"vcore": "x"}}))
    other = partition(queue("c$"), name="other")
    assert sorted(codes(config(wrong, other))) == ["invalid_quantity", "queue_name", "unknown_field", "wrong_type"]


def test_a_partition_with_something_unreadable_is_not_checked_further() -> None:
    """What could not be read would be missed: here the number of applications that the parent asks for."""
    wrong = queue("a", queue("b", maxapplications="1"), maxapplications=3)
    assert codes(config(partition(wrong))) == ["wrong_type"]


def test_an_unknown_field_hides_no_other_problem() -> None:
    """Everything else was read."""
    assert codes(config(partition(queue("a$", colour="red")))) == ["unknown_field", "queue_name"]


def test_loading_refuses_with_all_problems() -> None:
    """As a configuration that cannot work."""
    with pytest.raises(ConfigurationRefused) as refused:
        validation.load(config(partition(queue("a$"), queue("b$"))))
    assert isinstance(refused.value, errors.BadConfiguration)
    assert [problem.code for problem in refused.value.problems] == ["queue_name", "queue_name"]
    assert str(refused.value).count("\n") == 1


def test_a_message_does_not_carry_half_a_document() -> None:
    """Long values are cut."""
    (found,) = problems(config(partition(queue("a", parent=["x" * 50] * 1000))))
    assert len(str(found)) < 250


def test_codes_are_explained() -> None:
    """Each in words."""
    assert all(CODES.values())
