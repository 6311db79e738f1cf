"""What the demo puts on the stage."""

import collections
import pathlib

import pytest

from slurm_bridge import errors
from slurm_bridge.demo import work
from slurm_bridge.model import kinds, names
from slurm_bridge.settings import loader
from slurm_bridge.workloads import kind_table

JOB = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a, namespace: slurm-bridge}\nspec: {}\n"


def project(tmp_path: pathlib.Path, *names: str) -> pathlib.Path:
    """A repository with these examples."""
    for name in names:
        (tmp_path / "examples" / name).mkdir(parents=True)
        (tmp_path / "examples" / name / "job.yaml").write_text(JOB)
    return tmp_path


def test_the_shipped_configuration_is_what_the_daemon_runs_with(tmp_path: pathlib.Path) -> None:
    """It is valid once the pocket world's addresses are in it."""
    path = tmp_path / "config.yaml"
    path.write_text(work.configuration())
    settings = loader.load(path, {}, ["slurm.url=http://127.0.0.1:1", f"slurm.token_file={path}"])
    assert settings.leader_election.namespace == work.DAEMON_NAMESPACE


def test_without_a_repository_the_least_that_a_daemon_needs_is_configured(tmp_path: pathlib.Path) -> None:
    """An installed package has no deploy folder beside it."""
    path = tmp_path / "config.yaml"
    path.write_text(work.configuration(tmp_path))
    settings = loader.load(path, {}, ["slurm.url=http://127.0.0.1:1", f"slurm.token_file={path}"])
    assert settings.cluster_id == "demo"


def test_all_shipped_examples_are_shown_whose_controllers_are_there() -> None:
    """Each is a folder with a manifest, and the package of the one that brings a hook is installed for the tests."""
    programme = work.programme(0)
    assert {"job-sleep-single", "job-gang", "podgroup", "generic-group", "custom-hook"} <= set(programme.examples)
    assert programme.left_out["jobset"] == "no controller makes pods of a JobSet in the pocket Kubernetes"
    sets = {"jobset", "jobset-in-order", "leaderworkerset", "leaderworkerset-heterogeneous"}
    assert sets <= programme.left_out.keys()
    idle = {f"no controller makes pods of a {kind.kind} in the pocket Kubernetes" for kind in kind_table.SPECS}
    of_workloads = {name for name, why in programme.left_out.items() if why in idle}
    assert programme.left_out.keys() == {"cronjob", "deployment", "statefulset"} | of_workloads
    assert [hook["name"] for hook in work.hooks(programme.examples)] == ["office-hours"]
    assert programme.manifests[0]["kind"] == "Namespace"


def test_a_bare_pod_of_an_example_comes_to_an_end() -> None:
    """The pocket kubelet runs no program, so its end is requested by an annotation."""
    (pod,) = (one for one in work.programme(0).manifests if one["kind"] == "Pod")
    assert pod["metadata"]["annotations"]["kwok.local/outcome"] == "succeed"


def test_an_example_whose_package_is_not_installed_is_left_out_and_named(tmp_path: pathlib.Path) -> None:
    """Its hook would have to be there."""
    root = project(tmp_path, "plain", "hook")
    described = '[project]\n[project.entry-points."slurm_bridge.hooks"]\nnobody-has-it = "nowhere:Hook"\n'
    (root / "examples" / "hook" / "pyproject.toml").write_text(described)
    programme = work.programme(0, root)
    assert (programme.examples, list(programme.left_out)) == (("plain",), ["hook"])


def test_a_folder_without_a_manifest_is_left_out_and_named(tmp_path: pathlib.Path) -> None:
    """A folder is no example by itself."""
    (tmp_path / "examples" / "empty").mkdir(parents=True)
    assert work.programme(0, tmp_path).left_out == {"empty": "it has no manifest"}


@pytest.mark.parametrize("pods", [0, 1, 2, 7, 18, 40])
def test_exactly_so_many_pods_are_asked_for(pods: int) -> None:
    """Bare ones and those of Jobs together."""
    made = list(work.beside(pods))
    assert sum(one["spec"].get("completions", 1) for one in made) == pods


def test_pods_have_names_of_their_own() -> None:
    """Also those that come later."""
    names = [one["metadata"]["name"] for one in (*work.beside(50), *work.beside(20, 51), work.pod(71))]
    assert len(set(names)) == len(names)


def test_there_are_gangs_among_them() -> None:
    """Jobs that want their pods together, and groups by name, as large as they say, of members that differ."""
    made = list(work.beside(40))
    gangs = [one for one in made if names.ANNOTATION_GANG in one["metadata"].get("annotations", {})]
    assert [one["kind"] for one in gangs] == ["Job", "Job"]
    groups = collections.Counter(marks[names.GROUP] for one in made if (marks := one["metadata"].get("labels")))
    sizes = {
        marks[names.GROUP]: int(marks[names.GROUP_SIZE]) for one in made if (marks := one["metadata"].get("labels"))
    }
    assert groups == sizes
    assert len(groups) == 2
    asked = {
        one["spec"]["containers"][0]["resources"]["requests"]["cpu"] for one in made if "labels" in one["metadata"]
    }
    assert asked == {"2", "7"}


def test_a_group_that_is_cut_short_is_as_large_as_it_is() -> None:
    """It would wait for ever otherwise."""
    *_, last = work.beside(18)
    assert last["metadata"]["labels"][names.GROUP_SIZE] == "2"


def test_a_kind_that_the_world_does_not_serve_is_refused_by_name() -> None:
    """Before anything is sent."""
    with pytest.raises(errors.BadConfiguration, match=r"Widget of group .example\.org."):
        work.kind_of({"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "a"}})


def test_the_kind_is_found_whatever_the_version() -> None:
    """The cluster says which one it serves."""
    assert work.kind_of({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}}) is kinds.JOBS
