"""Which application a workload is part of, and what its pods ask for, by YuniKorn's labels and annotations."""

import dataclasses
from collections.abc import Mapping

import hypothesis
import pytest
from hypothesis import strategies as st

from slurm_bridge.families.yunikorn import identities
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Root
from slurm_bridge.workloads import voices
from tests.unit.hooks import builders as scene

LABELS, NOTES = "labels", "annotations"
ID, SHORT, SPARK = "yunikorn.apache.org/app-id", "applicationId", "spark-app-selector"
DEPLOYMENT = Root(kind="Deployment", namespace="team", name="web", uid="d1")


def marked(name: str = "a", **marks: Mapping[str, str]) -> Pod:
    """A pod with these labels and annotations."""
    return scene.pod(name, metadata=marks)


def read(*pods: Pod, topmost: Root | None = None) -> identities.PodsStatement:
    """What these pods say together."""
    made = scene.gang(*pods) if len(pods) > 1 else scene.workload(*pods)
    return identities.read(dataclasses.replace(made, topmost=topmost))


def test_the_order_of_ids_is_yunikorns() -> None:
    """Of several that agree each is as good; the canonical label is the first."""
    assert list(identities.IDS) == [
        ("label", ID),
        ("annotation", ID),
        ("label", SHORT),
        ("label", SPARK),
    ]
    assert list(identities.QUEUES) == [
        ("label", "yunikorn.apache.org/queue"),
        ("annotation", "yunikorn.apache.org/queue"),
        ("label", "queue"),
    ]


def test_an_id_that_is_given_counts_before_what_makes_the_pods() -> None:
    """It is one of their namespace."""
    found = read(marked(labels={SHORT: "app-1"}), topmost=DEPLOYMENT).application
    assert (found.title, found.given, found.key) == ("team/app-1", "app-1", "id/team/app-1")
    assert read(marked(), topmost=DEPLOYMENT).application.title == "team/web"


def test_the_driver_and_its_executors_have_one_key() -> None:
    """What makes the executors is the driver itself."""
    driver = scene.pod("driver")
    executor = read(scene.pod("exec"), topmost=voices.itself(driver))
    assert executor.application.key == read(driver).application.key


def test_no_id_is_the_key_of_an_object() -> None:
    """Whoever writes the key of another application as an id has one of its own."""
    forged = read(marked(labels={SHORT: "Deployment"}))
    assert forged.application.key != read(marked(), topmost=DEPLOYMENT).application.key


def test_the_pods_of_a_gang_name_one_application() -> None:
    """Two are refused with both pods; pods that say nothing follow the others."""
    one, two = marked("a", labels={SHORT: "x"}), marked("b", labels={SHORT: "y"})
    found = read(one, two)
    assert found.problem == (
        "Pod team/b: label applicationId=y and label applicationId=x of Pod team/a name two applications: "
        "name one of them"
    )
    assert found.application.given == ""
    assert read(one, marked("c")).application.given == "x"


def test_empty_values_say_nothing() -> None:
    """As in YuniKorn, the next place counts."""
    found = read(marked(labels={ID: "", SHORT: "x"}, annotations={ID: "  "}))
    assert (found.application.given, found.problem) == ("x", "")


@pytest.mark.parametrize(
    "mark", [{NOTES: {"yunikorn.apache.org/user.info": "{}"}}, {LABELS: {"yunikorn.apache.org/username": "ann"}}]
)
def test_users_that_pods_name_are_told_as_not_believed(mark: Mapping[str, Mapping[str, str]]) -> None:
    """By the kind of mark and its key."""
    ((kind, values),) = mark.items()
    assert read(marked(**mark)).ignored == f"{kind.removesuffix('s')} {next(iter(values))}"


_TEXT = st.text(max_size=90)


@hypothesis.given(st.dictionaries(st.sampled_from([ID, "yunikorn.apache.org/queue"]), _TEXT), _TEXT)
def test_whatever_is_written_the_key_is_of_the_namespace_and_short(notes: Mapping[str, str], label: str) -> None:
    """A problem names the pod, and nothing of it is believed."""
    found = read(marked(labels={SHORT: label}, annotations=notes))
    assert len(found.application.key) < 200
    assert found.application.key.split("/")[1] == "team"
    assert not found.problem or found.problem.startswith("Pod team/a: ")
    assert len(found.problem) < 400
    assert len(found.queue) <= 255
