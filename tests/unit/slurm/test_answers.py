"""Recorded answers of each API version, and oddities that no version should be able to crash us with."""

import dataclasses
import json

import msgspec
import pytest

from slurm_bridge import errors
from slurm_bridge.model.job import Cores, Gres, Memory, MemoryPer, NodeShare, Phase
from slurm_bridge.slurm import answers, conf, gres_text, replies, shapes
from slurm_bridge.slurm.wire import WIRES
from tests.unit.slurm.samples import RECORDED, VERSIONS, answer, problem, recorded

WITH_RESOURCES = ("v0.0.44", "v0.0.45")


def ids(version: str) -> dict[str, int]:
    """The ids that the recorded jobs had."""
    return json.loads((RECORDED / f"{version}.json").read_text())["ids"]


def row(version: str, name: str) -> shapes.JobRow:
    """The first recorded job."""
    return replies.read(recorded(version, name), shapes.Jobs)[0].jobs[0]


def share(node: str, cpus: int, gres: tuple[Gres, ...]) -> NodeShare:
    """What every recorded job has of a node."""
    return NodeShare(node=node, cpus=cpus, memory_mib=500, gres=gres)


GANG = (
    share("ext007", 4, (Gres(name="gpu", count=2),)),
    share("ext013", 2, (Gres(name="gpu", type="v100", count=2),)),
)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_waiting_job(version):
    """What was asked for comes back as it was asked."""
    view = answers.job(row(version, "job_pending"))
    assert view.state.phase is Phase.PENDING
    assert view.held
    assert view.owner is not None
    assert view.owner.uid == "u-waits"
    assert (view.constraints, view.licenses, view.comment, view.partition) == ("plain", "matlab:1", "c", "batch")
    assert view.excluded_nodes == ("ext001", "ext002")
    assert view.memory == Memory(mib=100, per=MemoryPer.CPU)
    assert (view.tasks, view.time_limit_minutes, view.nodes) == (2, None, ())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_running_job(version):
    """Its nodes, limit and times are there; the SLUID from v0.0.44."""
    view = answers.job(row(version, "job_running"))
    assert view.state.phase is Phase.RUNNING
    assert view.nodes == ("ext007", "ext013")
    assert view.time_limit_minutes == 60
    assert view.start_time >= view.submit_time > 0
    assert bool(view.sluid) == (version in WITH_RESOURCES)
    assert view.het_job_id is None


@pytest.mark.parametrize("version", VERSIONS)
def test_a_heterogeneous_job_lists_its_components(version):
    """The leader's answer has all of them, with their offsets."""
    views = [answers.job(each) for each in replies.read(recorded(version, "job_het"), shapes.Jobs)[0].jobs]
    assert [(view.het_job_id, view.het_offset) for view in views] == [(views[0].job_id, 0), (views[0].job_id, 1)]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_implied_maximum_is_none_where_the_version_tells(version):
    """Slurm derives a maximum from the tasks; only v0.0.45 says that it did."""
    assert answers.job(row(version, "job_pending")).maximum_nodes == (None if version == "v0.0.45" else 2)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_allocation_from_the_full_job(version):
    """Cpus, memory and GPUs of each node, in Slurm's order."""
    found = answers.allocation_of_job(row(version, "job_running"))
    assert found is not None
    assert found.shares == GANG


@pytest.mark.parametrize("version", WITH_RESOURCES)
def test_an_allocation_from_resources(version):
    """The same allocation; the zero counts of GPU types that a node does not have are left out."""
    rows = replies.read(recorded(version, "resources"), shapes.Resources)[0].nodes
    found = answers.allocation(ids(version)["running"], rows, {})
    assert found is not None
    assert tuple(dataclasses.replace(one, cores=None) for one in found.shares) == GANG
    assert [one.cores for one in found.shares] == [
        Cores(bits=bits, sockets=1, per_socket=64) for bits in (0x1E00, 0x18)
    ]


@pytest.mark.parametrize("version", WITH_RESOURCES)
def test_cores_become_cpus_by_their_threads(version):
    """The bitmap counts cores: two cores of two threads are the four cpus of the full record."""
    rows = replies.read(recorded(version, "resources_smt"), shapes.Resources)[0].nodes
    found = answers.allocation(1, rows, {"ext017": 2})
    assert found is not None
    (share,) = found.shares
    assert share.cores == Cores(bits=0b1100, sockets=1, per_socket=32)
    assert (dataclasses.replace(share, cores=None),) == answers.allocation_of_job(row(version, "job_smt")).shares
    assert found.shares[0].cpus == 4


def test_a_single_zero_count_stays():
    """Slurm lost count of a leaked GPU: that is "unknown", not "none"."""
    row_ = shapes.ResourceRow(node="n", core_bitmap="0x1", gres=[shapes.ResourceGres(name="gpu", type="a100")])
    assert answers.allocation(1, [row_], {}).shares[0].gres == (Gres(name="gpu", type="a100", count=0),)


def test_a_job_that_lost_its_gpus_spoils_no_list():
    """Of a leaked GPU the full record says null instead of a text; every other job must stay readable beside it."""
    nodes = {"allocation": [{"name": "n", "cpus": {"count": 2}, "memory": {"allocated": 64}}]}
    leaked = {"job_id": 1, "job_resources": {"nodes": nodes}, "gres_detail": [None]}
    rows = replies.read(answer({"jobs": [leaked, {"job_id": 2}]}), shapes.Jobs)[0].jobs
    assert [row_.job_id for row_ in rows] == [1, 2]
    assert answers.allocation_of_job(rows[0]).shares == (NodeShare(node="n", cpus=2, memory_mib=64),)


@pytest.mark.parametrize(
    ("gres", "text"),
    [
        (
            [{"name": "gpu", "type": "v100", "count": 2, "index": "0-1"}, {"name": "nic", "count": 0}],
            "gpu:v100:2(IDX:0-1)",
        ),
        ([{"name": "gpu", "count": 1, "index": 3}, {"name": "gpu", "type": "a", "count": 0}], "gpu:1(IDX:3)"),
        ([{"name": "gpu", "count": 1, "index": "0)\nx"}], ""),
        ([{"name": "x" * 2000, "count": 1}], ""),
    ],
)
def test_devices_are_told_as_slurm_writes_them(gres, text):
    """With their indices where there are some; a text that is none of Slurm's reaches no pod."""
    rows = [shapes.ResourceRow(node="n", core_bitmap="0x1", gres=[shapes.ResourceGres(**one) for one in gres])]
    assert answers.allocation(1, rows, {}).shares[0].devices == text


def test_no_nodes_is_no_allocation():
    """An empty list is not an allocation of nothing."""
    assert answers.allocation(1, [], {}) is None
    assert answers.allocation_of_job(shapes.JobRow(job_id=1)) is None


@pytest.mark.parametrize("version", VERSIONS)
def test_states(version):
    """Ids are text, unknown ids are left out, a leader has its components and a component has itself."""
    known = ids(version)
    found = answers.states(replies.read(recorded(version, "states"), shapes.States)[0].jobs)
    assert set(found) == {known["running"], known["pending"], known["het"], known["het"] + 1}
    assert found[known["het"]].phase is Phase.RUNNING
    assert [part.offset for part in found[known["het"]].components] == [0, 1]
    assert len(found[known["het"] + 1].components) == 1
    assert found[known["pending"]].phase is Phase.PENDING


def test_a_leader_with_a_chosen_id_finds_its_components():
    """The distance between the ids is an unsigned number of 32 bits."""
    rows = [
        shapes.StateRow(job_id="500000+0", state=["RUNNING"]),
        shapes.StateRow(job_id="27+4294467323", state=["CANCELLED"]),
        shapes.StateRow(job_id="27+4294467323", state=["CANCELLED"]),
    ]
    found = answers.states(rows)
    assert set(found) == {500000, 27}
    assert len(found[500000].components) == 2
    assert found[500000].torn


@pytest.mark.parametrize("job_id", ["7_[1-3]", "7_2", "", "7+x", "abc", "-3"])
def test_rows_that_are_no_job_of_ours_are_skipped(job_id):
    """Array jobs of others must not stop the poll."""
    assert answers.states([shapes.StateRow(job_id=job_id, state=["RUNNING"])]) == {}


@pytest.mark.parametrize("state", [["NEW_WORD"], [], None, "RUNNING"])
def test_unknown_words_do_not_crash(state):
    """A word that nobody knows is kept; a missing one is an unknown phase."""
    phase = answers.states([shapes.StateRow(job_id=7, state=state)])[7].phase
    assert phase is (Phase.RUNNING if state == "RUNNING" else Phase.UNKNOWN)


@pytest.mark.parametrize("version", VERSIONS)
def test_nodes(version):
    """Sizes, GPUs, features, threads; that a node is external is told from v0.0.44."""
    rows = replies.read(recorded(version, "nodes"), shapes.Nodes)[0].nodes
    found = {each.name: answers.node(each, told=WIRES[version].external) for each in rows}
    assert found["ext013"].gres == (Gres(name="gpu", type="v100", count=8),)
    assert (found["ext017"].threads_per_core, found["ext017"].cpus) == (2, 64)
    assert found["ext001"].features[0] == "plain"
    assert "debug" in found["ext001"].partitions
    assert found["ext001"].external == (version in WITH_RESOURCES)
    assert not found["ext001"].native


#: What Slurm 26.05 said of a node with a slurmd, CoreSpecCount=1 and MemSpecLimit=1024.
SHARED = {
    "name": "real1",
    "state": ["IDLE"],
    "cpus": 4,
    "effective_cpus": 3,
    "real_memory": 4096,
    "specialized_memory": 1024,
    "version": "26.05.5",
}


def node_row(*, told=True, **changes):
    """That node with other words; None leaves a field out."""
    row = {key: value for key, value in {**SHARED, **changes}.items() if value is not None}
    return answers.node(msgspec.json.decode(json.dumps(row), type=shapes.NodeRow), told=told)


def test_what_is_kept_for_the_system_is_no_jobs():
    """Slurm refuses a job that asks for it."""
    found = node_row()
    assert (found.cpus, found.memory_mib) == (3, 3072)
    plain = node_row(effective_cpus=None, specialized_memory=None)
    assert (plain.cpus, plain.memory_mib) == (4, 4096)


def test_what_a_hybrid_node_needs_of_slurm_conf():
    """As Slurm 26.05 told it; what is not set is empty, and no stranger's value is an error."""
    told = {
        "TaskPlugin": ["task/cgroup", "task/affinity"],
        "ProctrackType": "proctrack/cgroup",
        "Prolog": ["/etc/slurm/p"],
        "EpilogSlurmctld": ["/etc/slurm/e"],
        "MCSPlugin": "mcs/label",
        "MCSParameters": ["enforced", "select"],
        "Epilog": None,
    }
    found = conf.read(msgspec.json.decode(json.dumps(told), type=conf.ConfRow))
    assert (found.task_plugins, found.proctrack_type) == (("task/cgroup", "task/affinity"), "proctrack/cgroup")
    assert (found.prolog, found.epilog) == (("/etc/slurm/p",), ())
    assert (found.prolog_ctld, found.epilog_ctld) == ((), ("/etc/slurm/e",))
    assert (found.mcs_plugin, found.mcs_parameters) == ("mcs/label", ("enforced", "select"))


@pytest.mark.parametrize(
    ("native", "changes"),
    [
        (True, {}),
        # slurmctld has started anew, and no slurmd has registered yet.
        (True, {"version": "", "state": ["UNKNOWN"]}),
        (False, {"state": ["IDLE", "EXTERNAL"]}),
        (False, {"state": ["IDLE", "EXTERNAL"], "version": ""}),
        (True, {"told": False}),
        (True, {"told": False, "version": "", "state": ["UNKNOWN"]}),
        (False, {"told": False, "version": ""}),
    ],
)
def test_native_jobs_run_where_a_node_is_not_external(native, changes):
    """A version that does not tell it shows whether a slurmd has registered."""
    assert node_row(**changes).native is native


@pytest.mark.parametrize("version", VERSIONS)
def test_partitions(version):
    """Limits in minutes; exclusive whichever way the version says it."""
    rows = replies.read(recorded(version, "partitions"), shapes.Partitions)[0].partitions
    found = {each.name: answers.partition(each) for each in rows}
    assert [name for name in sorted(found) if found[name].exclusive] == ["exclusive"]
    assert (found["limited"].default_minutes, found["limited"].maximum_minutes) == (5, 10)
    assert found["exclusive"].maximum_minutes is None
    assert found["closed"].states == {"DOWN"}
    assert len(found["limited"].nodes) == 16


@pytest.mark.parametrize("version", VERSIONS)
def test_ping(version):
    """One controller that responds, and the release behind it."""
    found = answers.ping(replies.read(recorded(version, "ping"), shapes.Pings)[0])
    assert (found.responding, found.version, found.problem) == (True, "26.05.5", "")


def test_a_ping_that_says_no_inside_a_200():
    """A wrong token is told only in the status of the controller."""
    said = {"pings": [{"responding": False, "status": "Protocol authentication error"}]}
    found = answers.ping(replies.read(answer(said), shapes.Pings)[0])
    assert (found.responding, found.problem) == (False, "Protocol authentication error")


def test_no_controller_at_all_does_not_respond():
    """An empty list of pings is no good news."""
    assert not answers.ping(shapes.Pings(pings=[])).responding


@pytest.mark.parametrize("version", VERSIONS)
def test_a_refused_token(version):
    """511 with 1007 is a matter of who we are."""
    with pytest.raises(errors.NotAuthenticated):
        replies.read(recorded(version, "token_refused"), shapes.Nodes)[0]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_unknown_job(version):
    """404 in JSON carries Slurm's number."""
    with pytest.raises(errors.NotFound) as caught:
        replies.read(recorded(version, "job_unknown"), shapes.Jobs)[0]
    assert caught.value.code == 2017


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (answer({"jobs": None, "errors": [problem(-1)]}, 500), errors.Unanswered),
        (answer({"jobs": None, "errors": []}), errors.BadAnswer),
        (answer({}), errors.BadAnswer),
        (answer('{"jobs": [{"job_id"'), errors.BadAnswer),
        (answer("<html>hello</html>", 200, "text/html"), errors.BadAnswer),
        (answer(b"\xff\xfe".decode("latin-1")), errors.BadAnswer),
        (answer("[" * 20_000), errors.BadAnswer),
        (answer({"jobs": [], "errors": [problem(1800)]}), errors.Unanswered),
        (answer("Bad Gateway", 502, "text/html"), errors.Unanswered),
        (answer("", 503, "text/plain"), errors.Unavailable),
        (answer("", 403, "text/html"), errors.NotAuthorized),
        (answer("", 301, "text/html"), errors.BadConfiguration),
        (answer("Unspecified error", 500, "text/plain"), errors.Unanswered),
        (answer({"errors": [problem(2105)]}, 500), errors.Unavailable),
    ],
)
def test_a_read_that_failed_says_why(given, expected):
    """Missing or null lists are not empty lists: nothing may be concluded from them."""
    with pytest.raises(expected):
        replies.read(given, shapes.Jobs)[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpu:8", [("gpu", "", 8)]),
        ("gpu:v100:8(S:0-1),shard:4", [("gpu", "v100", 8), ("shard", "", 4)]),
        ("gpu:v100(CNT:2)", [("gpu", "v100", 2)]),
        ("gpu(CNT:2)", [("gpu", "", 2)]),
        ("gpu:2(IDX:0,3),nic:1(IDX:0)", [("gpu", "", 2), ("nic", "", 1)]),
        ("gres/gpu:a100:1,gres/gpu:v100:2", [("gpu", "a100", 1), ("gpu", "v100", 2)]),
        ("", []),
        ("(null)", []),
    ],
)
def test_notations_of_gres(text, expected):
    """Every notation that Slurm uses for the same thing."""
    assert [(one.name, one.type, one.count) for one in gres_text.read(text)] == expected


@pytest.mark.parametrize("text", ["a[1-", "[]", "a[x]"])
def test_a_text_that_is_no_hostlist_is_unknown(text):
    """It leads nowhere, says neither that there are no nodes, and does not stop the reading of all others."""
    assert answers.hosts(text) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (shapes.Number(set=True, number=5), 5),
        (shapes.Number(set=False, number=5), None),
        (shapes.Number(set=True, infinite=True), None),
        (5, 5),
        (None, None),
    ],
)
def test_numbers(value, expected):
    """Unset and endless are both no number."""
    assert shapes.number(value) == expected
