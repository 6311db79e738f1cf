"""Every kind of workload is explained as a whole: its members, in which order, what each gets, in which form."""

import json
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import yaml

from slurm_bridge import app
from slurm_bridge.demo import pocket
from slurm_bridge.explain import text
from slurm_bridge.explain.explainer import Explainer
from slurm_bridge.explain.explanation import Explanation
from slurm_bridge.model import kinds, names
from slurm_bridge.settings.model import Settings
from tests.component.explain import explained

Together = Callable[..., Sequence[Explanation]]
FRAMEWORKS = pathlib.Path(__file__).parents[3] / "examples" / "frameworks"
MEMBER = {names.GROUP: "mixed", names.GROUP_SIZE: "3"}


@pytest.fixture
def together(settings: Callable[..., Settings]) -> Together:
    """Manifests of one file against the pocket cluster; words are further `--set` values."""

    def made(*manifests: dict[str, Any], overrides: Sequence[str] = (), offline: bool = False) -> Sequence[Explanation]:
        with app.explainer(settings(*overrides), offline=offline) as one:
            return one.manifests(manifests)

    return made


def whole(found: Sequence[Explanation]) -> Explanation:
    """The only one."""
    (one,) = found
    return one


def member_names(found: Explanation) -> list[str]:
    """In rank order."""
    return [pod.metadata.name for pod in found.subject.members]


def held(found: Explanation) -> dict[str, tuple[str, str]]:
    """What holds a gang together, with the sources."""
    return {one.field: (one.value, one.source) for one in found.subject.gang}


def sent(found: Explanation) -> Any:
    """The job, or its components."""
    assert found.body is not None, found.obstacle
    return found.body.get("jobs") or found.body["job"]


def test_a_gang_of_a_job_is_one_job_of_all_its_pods(together: Together) -> None:
    """Ranked by completion index, with the source of its size."""
    found = whole(together(explained.gang(count=12)))
    assert member_names(found)[:3] == ["crew-0-xxxxx", "crew-1-xxxxx", "crew-2-xxxxx"]
    assert member_names(found)[-1] == "crew-11-xxxxx"
    assert held(found)["minimum"] == ("12", "spec.parallelism and spec.completions of Job default/crew")
    assert (sent(found)["tasks"], sent(found)["name"]) == (12, "crew")
    assert found.form is not None
    assert found.form.name == "TASKS"


def test_pods_that_differ_in_nothing_are_explained_once(together: Together) -> None:
    """And the answer says how many they are."""
    found = whole(together(explained.job(parallelism=4, completions=4)))
    assert found.subject.title == "Job default/train, through a pod that it makes"
    assert "3 more like this: each is a workload of its own" in found.notes
    assert found.subject.gang == ()


def test_a_setting_makes_jobs_gangs(together: Together) -> None:
    """As the daemon would have it."""
    found = whole(together(explained.job(parallelism=4, completions=4), overrides=("workloads.job=gang",)))
    assert held(found)["size"][0] == "4"


def test_what_follows_when_a_member_is_lost_names_its_source(together: Together) -> None:
    """An annotation, a setting, or the kind."""
    said = whole(together(explained.gang(annotations={"member-lost": "restart-group"})))
    chosen = whole(together(explained.gang(), overrides=("workloads.member_lost=restart-group",)))
    usual = whole(together(explained.gang()))
    texts = [held(one)["member lost"] for one in (said, chosen, usual)]
    assert [value for value, _ in texts] == ["restart-group", "restart-group", "keep"]
    assert texts[0][1].startswith("annotation slurmjob.slinky.slurm.net/member-lost of Job/crew")
    assert texts[1][1].startswith("setting workloads.member_lost")
    assert texts[2][1].startswith("as a Job has it")


def test_a_jobset_is_ranked_as_it_lists_its_parts(together: Together) -> None:
    """Then by Job, then by index."""
    found = whole(together(explained.jobset(("lead", 1, 1), ("work", 2, 2))))
    assert member_names(found) == [
        "sim-lead-0-0-xxxxx",
        "sim-work-0-0-xxxxx",
        "sim-work-0-1-xxxxx",
        "sim-work-1-0-xxxxx",
        "sim-work-1-1-xxxxx",
    ]
    assert held(found)["minimum"][0] == "5"


def test_the_parts_of_a_jobset_in_order_are_workloads_of_their_own(together: Together) -> None:
    """Each under its name."""
    order = {"startupPolicy": {"startupPolicyOrder": "InOrder"}}
    found = together(explained.jobset(("first", 1, 1), ("then", 1, 2), **order))
    assert [one.subject.title for one in found] == ["JobSet default/sim, first", "JobSet default/sim, then"]


def test_the_pods_of_an_mpijob_are_one_gang_before_the_operator_has_made_them(together: Together) -> None:
    """The launcher is last, and is a pod of a Job that does not exist yet, either."""
    (manifest,) = yaml.safe_load_all((FRAMEWORKS / "mpijob.yaml").read_text())
    found = whole(together(manifest))
    assert member_names(found) == ["mpijob-worker-0", "mpijob-worker-1", "mpijob-launcher-xxxxx"]
    assert held(found)["minimum"] == ("3", "spec.mpiReplicaSpecs of MPIJob slurm-bridge/mpijob")
    assert sent(found)["name"] == "mpijob"


def test_a_launcher_that_waits_for_the_workers_is_a_workload_of_its_own(together: Together) -> None:
    """The explanation has both, in the order in which the operator makes them."""
    (manifest,) = yaml.safe_load_all((FRAMEWORKS / "mpijob.yaml").read_text())
    manifest["spec"]["launcherCreationPolicy"] = "WaitForWorkersReady"
    found = together(manifest)
    titles = [one.subject.title for one in found]
    assert titles == [f"MPIJob slurm-bridge/mpijob, {role}" for role in ("worker", "launcher")]


def test_a_heterogeneous_group_that_fits_on_a_node_is_one_job_of_sums(together: Together) -> None:
    """And every shape has its own slot and its own nodes."""
    found = whole(together(explained.leaderworkerset(3, explained.gpus(2, 2), explained.gpus(1, 1))))
    assert [slot.amounts for slot in found.slots] == ["2 cpus, 64 MiB, gpu:2", "1 cpu, 64 MiB, gpu:1"]
    assert [slot.names for slot in found.slots] == [("serve-0",), ("serve-0-1", "serve-0-2")]
    assert found.form is not None
    assert found.form.name == "SUM"
    assert [one.members for one in found.reasons] == ["1 of 3 pods (serve-0)", "2 of 3 pods (serve-0-1, serve-0-2)"]
    assert held(found)["member lost"][0] == "follow"


def test_a_heterogeneous_group_that_fits_on_no_node_is_a_job_of_components(together: Together) -> None:
    """One for each shape, and only the first has an id and the whole record."""
    found = whole(together(explained.leaderworkerset(3, explained.gpus(2, 8), explained.gpus(1, 4))))
    assert found.form is not None
    assert found.form.name == "HET"
    leader, workers = sent(found)
    assert (leader["tres_per_node"], workers["tres_per_node"]) == ("gres/gpu:8", "gres/gpu:8")
    assert ("job_id" in leader, "job_id" in workers) == (True, False)


def test_without_that_capability_the_bound_over_all_is_asked_for_and_said(together: Together) -> None:
    """The site has switched it off."""
    group = explained.leaderworkerset(3, explained.gpus(2, 8), explained.gpus(1, 4))
    found = whole(together(group, overrides=('workloads.heterogeneous="never"',)))
    assert found.form is not None
    assert found.form.name == "BOUND"
    assert found.told
    assert found.told in text.render(found, verbose=False)
    assert sent(found)["tasks"] == 3


def test_how_many_members_an_empty_node_takes_is_told(together: Together) -> None:
    """By the GPUs, which are what these have least of."""
    found = whole(together(explained.leaderworkerset(3, explained.gpus(2, 2), explained.gpus(1, 1))))
    fits = [dict(slot.fits or {}) for slot in found.slots]
    assert [list(one) for one in fits] == [[4], [8]]
    rendered = text.render(found, verbose=False)
    assert "2: 2 x 1 cpu, 64 MiB, gpu:1\n     an empty node has room for 8: ext[" in rendered
    assert "  0  serve-0    slot 1\n  1  serve-0-1  slot 2\n" in rendered


@pytest.mark.parametrize("coscheduling", [False, True])
def test_pods_that_name_a_podgroup_of_the_same_file_are_its_members(together: Together, coscheduling: bool) -> None:
    """Whatever controller makes them."""
    template: dict[str, Any] = {"spec": explained.spec(schedulingGroup={"podGroupName": "together"})}
    if coscheduling:
        template = {"metadata": {"labels": {names.LABEL_COSCHEDULING: "together"}}, "spec": explained.spec()}
    group = explained.podgroup(2, coscheduling=coscheduling)
    found = whole(together(group, explained.job(parallelism=3, completions=3, template=template)))
    assert found.subject.title == "PodGroup default/together"
    source = "spec.minMember" if coscheduling else "spec.schedulingPolicy.gang.minCount"
    assert held(found)["minimum"] == ("2", f"{source} of PodGroup default/together")
    assert sent(found)["tasks"] == 3


def test_a_podgroup_that_is_not_there_is_waited_for(together: Together) -> None:
    """The request cannot be determined."""
    found = whole(together(explained.pod(schedulingGroup={"podGroupName": "nobody"})))
    assert (found.status, found.body, found.slots) == (3, None, ())
    assert found.obstacle is not None
    assert found.obstacle.reason == "GroupMissing"
    assert json.loads(json.dumps(text.document(found, verbose=False)))["workload"]["kind"] == "PodGroup"


def test_a_group_of_pods_of_two_makers_is_one_workload(together: Together) -> None:
    """By the marks on its pods alone."""
    jobs = [
        explained.job(
            name,
            parallelism=count,
            completions=count,
            template={"metadata": {"labels": MEMBER}, "spec": explained.spec()},
        )
        for name, count in (("server", 1), ("clients", 2))
    ]
    found = whole(together(*jobs))
    assert found.subject.title == "Group default/mixed"
    assert member_names(found) == ["clients-xxxx0", "clients-xxxx1", "server-xxxxx"]
    assert held(found)["minimum"] == ("3", f"{names.GROUP_SIZE} of Group default/mixed")


def test_a_group_that_is_not_complete_says_who_is_missing_and_what_is_asked_for_those_that_are_there(
    together: Together,
) -> None:
    """So that its user sees both."""
    template = {"metadata": {"labels": MEMBER}, "spec": explained.spec()}
    found = whole(together(explained.job("clients", parallelism=2, completions=2, template=template)))
    assert found.status == 3
    assert found.obstacle is not None
    assert (found.obstacle.reason, found.obstacle.message) == (
        "GangIncomplete",
        "2 of 3 pods of Group default/mixed are there",
    )
    assert [len(slot.names) for slot in found.slots] == [2]


@pytest.mark.parametrize(
    ("manifest", "title", "source"),
    [
        ("Deployment", "Deployment default/train, through a pod that it makes", "Deployment default/train"),
        ("StatefulSet", "StatefulSet default/train, through a pod that it makes", "StatefulSet default/train"),
        ("CronJob", "CronJob default/train, through a pod that it makes", "Job default/train-xxxxx"),
    ],
)
def test_the_highest_owner_that_speaks_is_named(together: Together, manifest: str, title: str, source: str) -> None:
    """Of a CronJob it is the Job."""
    made = {**explained.job(annotations={"partition": "batch"}), "kind": manifest, "apiVersion": "apps/v1"}
    if manifest == "CronJob":
        job = {key: made[key] for key in ("metadata", "spec")}
        made = {**made, "apiVersion": "batch/v1", "spec": {"jobTemplate": job}, "metadata": {"name": "train"}}
    found = whole(together(made))
    assert found.subject.title == title
    assert next(one for one in found.values if one.field == "partition").source.endswith(f"of {source}")


def test_offline_the_form_of_a_gang_is_left_open(together: Together) -> None:
    """Slurm's nodes decide on it: nothing is shown that would not be sent."""
    found = whole(together(explained.gang(), offline=True))
    assert (found.status, found.body, found.form) == (0, None, None)
    assert any(note.startswith("how one job holds these pods depends") for note in found.notes)
    assert [slot.fits for slot in found.slots] == [None]


def test_a_suspended_gang_says_so(together: Together) -> None:
    """It holds no placeholder."""
    found = whole(together(explained.gang(suspend=True)))
    assert "Job default/crew is suspended: it makes no pods until spec.suspend is false" in found.notes


def test_a_long_list_of_members_is_cut_for_people_only(together: Together) -> None:
    """`--verbose` and machines see all."""
    found = whole(together(explained.gang(count=40)))
    plain, verbose = (text.render(found, verbose=one) for one in (False, True))
    assert "… and 24 more" in plain
    assert "crew-39-xxxxx" in verbose
    assert len(text.document(found, verbose=False)["members"]) == 40


def test_a_member_that_exists_is_explained_with_all_others(explainer: Explainer, world: pocket.PocketWorld) -> None:
    """Those that run show their node and their job."""
    made = world.cluster.create(kinds.JOBS, "default", explained.gang("live", suspend=True))
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "live", "uid": made.uid, "controller": True}
    for index in range(3):
        manifest = explained.pod(f"live-{index}", **({"nodeName": f"ext00{index + 1}"} if index else {}))
        manifest["metadata"] |= {
            "ownerReferences": [reference],
            "labels": {names.LABEL_JOB_ID: "51"},
            "annotations": {names.ANNOTATION_COMPLETION_INDEX: str(index)},
        }
        world.kube.create(kinds.PODS, manifest)
    world.kube.create(kinds.PODS, explained.pod("stranger"))
    found = explainer.pod("default", "live-2")
    rendered = text.render(found, verbose=False)
    assert found.subject.title == "Job default/live"
    assert "2 of 3 members are bound; what follows would be requested today" in rendered
    assert "  0  live-0\n  1  live-1  on ext002  job 51\n  2  live-2  on ext003  job 51\n" in rendered
    assert sent(found)["tasks"] == 3


def test_a_look_at_many_members_asks_for_their_owner_once(explainer: Explainer, world: pocket.PocketWorld) -> None:
    """What is asked for once is remembered for that question."""
    made = world.cluster.create(kinds.JOBS, "default", explained.gang("asked", count=8, suspend=True))
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "asked", "uid": made.uid, "controller": True}
    for index in range(8):
        manifest = explained.pod(f"asked-{index}")
        manifest["metadata"]["ownerReferences"] = [reference]
        world.kube.create(kinds.PODS, manifest)
    before = world.kube_calls.count(method="GET", target="/jobs/asked")
    assert len(explainer.pod("default", "asked-0").subject.members) == 8
    assert world.kube_calls.count(method="GET", target="/jobs/asked") == before + 1


def test_members_that_do_not_count_say_why(explainer: Explainer, world: pocket.PocketWorld) -> None:
    """One is over, one is held back: what is asked for is without them."""
    for name in "abcd":
        gates = {"schedulingGates": [{"name": "quota"}]} if name == "b" else {}
        manifest = explained.pod(f"mixed-{name}", **gates)
        manifest["metadata"]["labels"] = {names.GROUP: "states", names.GROUP_SIZE: "4"}
        world.kube.create(kinds.PODS, manifest)
    world.kube.merge(kinds.PODS, ("default", "mixed-c"), {"status": {"phase": "Failed"}}, "status")
    found = explainer.pod("default", "mixed-a")
    assert found.obstacle is not None
    assert found.obstacle.message == "2 of 4 pods of Group default/states are there"
    rendered = text.render(found, verbose=False)
    assert "  1  mixed-b  held by scheduling gates\n  2  mixed-c  over (Failed)\n" in rendered
    assert [slot.names for slot in found.slots] == [("mixed-a", "mixed-d")]
