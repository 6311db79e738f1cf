"""Every example runs as it is, with the configuration that deploy/ ships."""

import pathlib
from collections.abc import Iterator, Mapping

import pytest
import yaml

from localcluster.config import PROJECT
from tests import waiting
from tests.e2e import support_daemon, support_servers, support_world
from tests.e2e.support_servers import Json

EXAMPLES = sorted(path.parent for path in (PROJECT / "examples").glob("*/job.yaml"))
MANIFESTS_ALONE = [path for path in EXAMPLES if not (path / "pyproject.toml").exists()]
NAMESPACE = "slurm-bridge"
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"

#: What the placeholder of each example has to show for it, beside running to its end.
SHOWN = {
    "exclusive": {"OverSubscribe": "NO"},
    "gres": {"TresPerNode": "gres/gpu:2", "Partition": "gpu"},
    "job-sleep-single": {"JobName": "job-sleep-single", "Account": "schedmd", "Partition": "debug"},
    "max-nodes": {"NumNodes": "1"},
    "mem-per-node": {"MinMemoryNode": "8G"},
    "partition": {"Partition": "batch"},
    "policy": {"Priority": "500", "Account": "research"},
    "timelimit": {"TimeLimit": "00:05:00"},
}


def shipped() -> Json:
    """What deploy/config.yaml says, but for where things are."""
    found: Json = yaml.safe_load(
        yaml.safe_load((PROJECT / "deploy" / "config.yaml").read_text())["data"]["config.yaml"]
    )
    return {group: found[group] for group in ("defaults", "hooks", "gres", "ends") if group in found}


@pytest.fixture(scope="module")
def daemon(
    cluster: Mapping[str, str], kube: support_servers.Kubernetes, slurm: support_servers.Slurm, work: pathlib.Path
) -> Iterator[support_daemon.Daemon]:
    """For the scheduler name of the manifests, because they are applied as they are."""
    name = support_daemon.fresh_name("examples")
    chosen = support_daemon.settings(cluster, name, scheduler_names=["slurm-bridge-scheduler"], **shipped())
    started = support_daemon.Daemon(work, chosen)
    with support_world.ending(started, kube, slurm):
        started.start()
        started.await_ready()
        yield started


@pytest.fixture(scope="module")
def applied(daemon: support_daemon.Daemon, kube: support_servers.Kubernetes) -> Iterator[support_daemon.Daemon]:
    """All at once, as somebody in a hurry would."""
    kube.apply(*(example / "job.yaml" for example in EXAMPLES))
    yield daemon
    for example in EXAMPLES:
        for document in yaml.safe_load_all((example / "job.yaml").read_text()):
            support_servers.said(
                *(PROJECT / "hack/cluster/kubectl", "--namespace", NAMESPACE, "delete", "--wait=false"),
                *("--ignore-not-found", document["kind"], document["metadata"]["name"]),
            )


@pytest.mark.real
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_reaches_its_end(
    applied: support_daemon.Daemon,
    kube: support_servers.Kubernetes,
    slurm: support_servers.Slurm,
    example: pathlib.Path,
) -> None:
    """The Job succeeds, and Slurm shows what the example is about."""
    name = example.name
    waiting.until(lambda: kube.get(f"{JOBS}/{name}")["status"].get("succeeded"), f"success\n{applied.last_words()}", 40)
    uid = kube.get(f"{JOBS}/{name}")["metadata"]["uid"]
    (pod,) = kube.items(
        f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=batch.kubernetes.io%2Fcontroller-uid%3D{uid}"
    )
    shown = slurm.shown(support_world.job_id(pod))
    expected = SHOWN.get(name, {})
    assert {word: shown.get(word) for word in expected} == expected
    if name == "node-selector":
        node = kube.get(f"/api/v1/nodes/{pod['spec']['nodeName']}")
        assert pod["spec"]["nodeSelector"].items() <= node["metadata"]["labels"].items()


@pytest.mark.parametrize("example", MANIFESTS_ALONE, ids=lambda path: path.name)
def test_an_example_is_a_manifest_and_two_lines(example: pathlib.Path) -> None:
    """A title, an empty line, and two lines that say what it shows."""
    title, empty, *lines = (example / "README.md").read_text().splitlines()
    assert (title, empty) == (f"# {example.name}", "")
    assert len(lines) == 2
