"""What a workload is to the core: amounts, whose it is, and where its queue leads."""

import dataclasses
from typing import Any

import pytest

from slurm_bridge.families.yunikorn import demands, people, setup
from slurm_bridge.families.yunikorn.options import UserOptions, YunikornOptions
from slurm_bridge.hooks.base import Ask
from slurm_bridge.model import creator, names
from slurm_bridge.model.job import Gres, GresPer, Memory, MemoryPer
from slurm_bridge.model.meta import Object, ObjectMeta
from slurm_bridge.model.pod import Pod
from tests.component.families.yunikorn.yunikorn_scenes import Listed, document, queue
from tests.unit.hooks import builders as scene

GPUS = {"gpu": "nvidia.com/gpu"}
NO_CLASSES = Listed(())


def ask(*pods: Any, values: Any = (), **fields: Any) -> Ask:
    """A workload of these pods, and what became of its request."""
    return Ask(workload=scene.gang(*pods), request=scene.request(**fields), values=values)


def options(*queues: Any, **fields: Any) -> YunikornOptions:
    """As they are configured."""
    return YunikornOptions.model_validate({"configuration": document(*queues), **fields})


def test_the_amounts_of_all_pods_are_added() -> None:
    """Processors in thousandths, the rest by its name; pods count, too."""
    one = scene.pod("a", requests={"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "1"})
    assert demands.total(ask(one, scene.pod("b", requests={"cpu": "2"})), GPUS) == {
        "vcore": 2500,
        "memory": 1 << 30,
        "nvidia.com/gpu": 1,
        "pods": 2,
    }


@pytest.mark.parametrize(
    ("field", "fields", "kind", "amount"),
    [
        ("cpus_per_task", {"cpus_per_task": 8, "tasks": 2}, "vcore", 16_000),
        ("memory", {"memory": Memory(mib=100)}, "memory", 100 << 20),
        ("memory", {"memory": Memory(mib=10, per=MemoryPer.CPU), "cpus_per_task": 4}, "memory", 40 << 20),
        (
            "memory",
            {"memory": Memory(mib=10, per=MemoryPer.GPU), "gres": (Gres(name="gpu", count=3),)},
            "memory",
            30 << 20,
        ),
        ("gres", {"gres": (Gres(name="gpu", count=3),)}, "nvidia.com/gpu", 3),
        ("gres", {"gres": (Gres(name="gpu", count=1),), "gres_per": GresPer.TASK, "tasks": 4}, "nvidia.com/gpu", 4),
        ("gres", {"gres": (Gres(name="tape", count=1),)}, "gres/tape", 1),
    ],
)
def test_what_an_annotation_asks_of_slurm_counts(field: str, fields: Any, kind: str, amount: int) -> None:
    """A small pod is no way around a maximum."""
    asked = ask(scene.pod(requests={"cpu": "1", "memory": "1Mi"}), values=(scene.annotated(field, "x"),), **fields)
    assert demands.total(asked, GPUS)[kind] == amount


def test_a_workload_is_its_service_accounts() -> None:
    """With the groups that Kubernetes gives to it."""
    user = people.user_of(scene.workload(scene.pod(service_account_name="sim")), ())
    assert user.name == "system:serviceaccount:team:sim"
    assert user.groups == ("system:serviceaccounts:team", "system:serviceaccounts")


def test_the_first_entry_that_matches_says_who_it_is() -> None:
    """By namespace and service account."""
    rows = (
        UserOptions(namespaces=("other",), user="bob"),
        UserOptions(namespaces=("te*",), user="ann", groups=("dev",)),
    )
    user = people.user_of(scene.workload(), rows)
    assert (user.name, user.groups[0]) == ("ann", "dev")


def created(name: str, user: str) -> Pod:
    """A pod with the record of its creator."""
    record = {names.ANNOTATION_CREATED_BY: creator.write(user, ("physics",))}
    return scene.pod(name, metadata={"annotations": record})


@pytest.mark.security("identity")
def test_a_workload_belongs_to_its_creator_only_where_records_count() -> None:
    """A queue takes the recorded creator for the user only if an entry of `users` and the settings say so."""
    rows, alone = (UserOptions(creators=True),), scene.workload(created("a", "alice"))
    counting = dataclasses.replace(alone, creators={})
    assert people.user_of(counting, rows) == people.QueueUser("alice", ("physics",), "user alice")
    for workload, users in ((alone, rows), (counting, ()), (dataclasses.replace(scene.workload(), creators={}), rows)):
        assert people.user_of(workload, users).name == "system:serviceaccount:team:default"


def test_pods_of_several_creators_enter_no_queue() -> None:
    """A gang is charged to one user; records that do not count tell no users apart."""
    mixed = scene.gang(created("a", "alice"), created("b", "bob"))
    counting = dataclasses.replace(mixed, creators={})
    wrong = people.several(counting, (UserOptions(creators=True),))
    assert wrong == "its pods were created by several users (alice, bob); a queue is entered by one"
    assert people.several(counting, ()) == people.several(mixed, (UserOptions(creators=True),)) == ""
    same = dataclasses.replace(scene.gang(created("a", "alice"), created("b", "alice")), creators={})
    assert people.several(same, (UserOptions(creators=True),)) == ""


def test_tags_are_the_namespace_and_its_labels() -> None:
    """The names of labels in lower case, as rules compare them."""
    namespace = Object(metadata=ObjectMeta(name="team", labels={"Cost-Center": "physics", "namespace": "forged"}))
    assert people.tags_of(scene.workload(), Listed([namespace])) == {"cost-center": "physics", "namespace": "team"}


def test_pods_of_several_accounts_are_nobodys() -> None:
    """Who may set pods beside another's must not use that one's queue."""
    pods = (scene.pod("a", service_account_name="x"), scene.pod("b"))
    assert people.several(scene.gang(*pods), ()).startswith("its pods run under several service accounts (default, x)")
    assert people.several(scene.gang(scene.pod("a"), scene.pod("b")), ()) == ""


def test_a_queue_goes_where_the_nearest_entry_says() -> None:
    """All of it from one entry."""
    made = setup.make(options(queue("a", queue("b")), map={"root": {"qos": "low"}, "root.A": {"account": "physics"}}))
    assert made.fields("root.a.b").given() == {"account": "physics"}
    assert made.fields("root.c").given() == {"qos": "low"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"map": {"root.x": {}, "root.a.x": {}}}, "map: 'root.a.x' is no queue; there are root, root.a"),
        ({"partition": "gpu"}, "partition 'gpu': the configuration has only default"),
        (
            {"map": {"root": {"account": "physics"}}, "slurm_limits": True},
            "map.root: queue root.a has max here, and is mapped to account physics, which slurm_limits says has limits",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(given: Any, words: str) -> None:
    """With the key, the value and what there is."""
    with pytest.raises(Exception, match=words.replace("(", r"\(").replace(".", r"\.")):
        setup.make(options(queue("a", resources={"max": {"vcore": "1"}}), **given))


def test_limits_of_slurm_are_no_contradiction_where_slurm_decides() -> None:
    """There the queues only map."""
    given = {"map": {"root": {"account": "physics"}}, "slurm_limits": True, "mode": "slurm"}
    made = setup.make(options(queue("a", resources={"max": {"vcore": "1"}}), **given))
    assert made.partition.root.queues[0].max is None
    assert made.written.root.queues[0].max == {"vcore": 1000}


@pytest.mark.parametrize("given", [{}, {"configuration": {}, "file": "x.yaml"}])
def test_queues_are_given_once(given: Any) -> None:
    """Here, or in a file."""
    with pytest.raises(ValueError, match="use one"):
        YunikornOptions.model_validate(given)


def test_what_a_workload_demands_is_worked_out_once_a_pass() -> None:
    """And anew where another workload asks, or its namespace or its hints are others by then."""
    known = demands.Demands(options(queue("a")))
    asked, listed = ask(scene.pod("a")), Listed((Object(metadata=ObjectMeta(name="team", namespace="")),))
    found = known.of(asked, listed, NO_CLASSES)
    assert known.of(dataclasses.replace(asked, request=scene.request(tasks=7)), listed, NO_CLASSES) is found
    hinted = dataclasses.replace(asked, hints={"queue": "root.a"})
    assert (found.queue, known.of(hinted, listed, NO_CLASSES).queue) == ("", "root.a")
    assert known.of(ask(scene.pod("b", requests={"cpu": "3"})), listed, NO_CLASSES).total["vcore"] == 3_000
    labelled = ObjectMeta(name=asked.workload.root.namespace, namespace="", labels={"cost": "x"})
    assert known.of(asked, Listed((Object(metadata=labelled),)), NO_CLASSES).tags["cost"] == "x"


def test_what_an_annotation_asks_for_is_never_remembered() -> None:
    """It is part of the request, which other hooks change during a pass."""
    known, listed = demands.Demands(options(queue("a"))), Listed(())
    asked = ask(scene.pod("a"), values=(scene.annotated("cpus_per_task", "x"),), cpus_per_task=2)
    assert known.of(asked, listed, NO_CLASSES).total["vcore"] == 2_000
    assert (
        known.of(dataclasses.replace(asked, request=scene.request(cpus_per_task=5)), listed, NO_CLASSES).total["vcore"]
        == 5_000
    )
