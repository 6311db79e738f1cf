"""What the settings mean for each room: every key means something, and nothing is lost on the way."""

import dataclasses
import typing
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from slurm_bridge import app, errors
from slurm_bridge.cluster.snapshot import EMPTY
from slurm_bridge.daemon import admission_api, configuration
from slurm_bridge.hooks.chain import Plan
from slurm_bridge.hooks.services import ChainServices
from slurm_bridge.model.slurmnode import Partition
from slurm_bridge.model.verdict import Wait
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.settings import groups
from slurm_bridge.settings.model import Settings
from slurm_bridge.translate.translator import Translated
from tests.unit.families.test_eligibility import Objects
from tests.unit.hooks.builders import cluster, node, pod, translated, workload
from tests.unit.translate import translating


def settings(**values: Any) -> Settings:
    """The least that there has to be, and these."""
    return Settings.model_validate(
        {"cluster_id": "here", "slurm": {"url": "http://localhost", "token_file": "/t"}, **values}
    )


ROOMS: Mapping[str, Callable[[Settings], object]] = {
    "rules": configuration.rules,
    "ends": configuration.ends,
    "limits": configuration.limits,
    "rhythm": configuration.rhythm,
    "attempts": configuration.attempt_limits,
    "status": configuration.status,
}

#: For each key a value that is not its default, and the rooms that have to notice.
OTHER: Mapping[tuple[str, str], tuple[object, str]] = {
    ("defaults", "partition"): ("batch", "rules"),
    ("defaults", "account"): ("a", "rules"),
    ("defaults", "qos"): ("q", "rules"),
    ("defaults", "gres"): ("gpu:1", "rules"),
    ("defaults", "timelimit"): (7, "rules"),
    ("defaults", "exclusive"): (True, "rules"),
    ("defaults", "one_per_node"): (True, "rules"),
    ("defaults", "mcs_label"): ("m", "rules"),
    ("defaults", "cpus"): ("2", "rules"),
    ("defaults", "memory"): ("1Gi", "rules"),
    ("defaults", "count"): ("limits", "rules"),
    ("defaults", "user"): ("u", "rules"),
    ("defaults", "group"): ("g", "rules"),
    ("defaults", "environment"): (True, "rules"),
    ("attempts", "candidates"): (1, "attempts"),
    ("attempts", "window_seconds"): (1, "attempts"),
    ("attempts", "total"): (1, "attempts"),
    ("attempts", "then"): ("stay", "attempts"),
    ("scheduling", "unstarted_window"): (1, "limits"),
    ("scheduling", "bind_tries"): (1, "limits"),
    ("scheduling", "backoff_first_seconds"): (2, "limits"),
    ("scheduling", "backoff_most_seconds"): (20, "limits"),
    ("mirror", "fastest_seconds"): (1, "rhythm"),
    ("mirror", "slowest_seconds"): (9, "rhythm"),
    ("mirror", "cpu_share"): (0.5, "rhythm"),
    ("mirror", "detail_reads_per_second"): (9, "rhythm"),
    ("mirror", "full_list_above"): (9, "rhythm"),
    ("mirror", "sweep_seconds"): (9, "rhythm"),
    ("mirror", "vanished_minimum"): (9, "ends"),
    ("mirror", "vanished_fraction"): (0.9, "ends"),
    ("ends", "after_timeout"): ({"default": "hold"}, "ends"),
    ("ends", "stuck_seconds"): (9, "ends"),
    ("status", "conditions_per_second"): (9, "status"),
    ("status", "events_per_second"): (9, "status"),
    ("status", "patience_seconds"): (9, "status"),
}
#: Read where the threads, and what they share, are made.
ELSEWHERE = {("scheduling", "workers"), ("scheduling", "avoid_seconds")}
GROUPS = {
    "defaults": groups.DefaultsSettings,
    "attempts": groups.Attempts,
    "scheduling": groups.Scheduling,
    "mirror": groups.MirrorSettings,
    "ends": groups.EndsSettings,
    "status": groups.StatusSettings,
}


def test_every_key_of_these_groups_is_looked_at() -> None:
    """A new key that is not mapped would be a setting without effect."""
    keys = {(name, key) for name, group in GROUPS.items() for key in group.model_fields}
    assert keys == OTHER.keys() | ELSEWHERE


@pytest.mark.parametrize(("group", "key"), OTHER)
def test_a_changed_key_changes_exactly_one_room(group: str, key: str) -> None:
    """The one that has to notice."""
    value, room = OTHER[group, key]
    before, after = settings(), settings(**{group: {key: value}})
    assert {name for name, read in ROOMS.items() if read(before) != read(after)} == {room}


def test_amounts_are_rounded_up_and_never_nothing() -> None:
    """Half a cpu is one for Slurm, and a kilobyte is a mebibyte."""
    rules = configuration.rules(settings(defaults={"cpus": "500m", "memory": "1Ki"}))
    assert (rules.cpus, rules.memory_mib) == (1, 1)


def test_defaults_that_no_job_could_have_are_refused() -> None:
    """At the start, not with the first pod."""
    with pytest.raises(errors.BadConfiguration, match="defaults"):
        configuration.rules(settings(defaults={"gres": "gpu:none:of:it"}))


def test_hold_by_default_means_all_kinds_but_those_that_say_otherwise() -> None:
    """The built-in kinds, and those that are named."""
    held = configuration.ends(settings(ends={"after_timeout": {"default": "hold", "Job": "resubmit", "Mine": "hold"}}))
    assert "Job" not in held.hold_after_timeout
    assert {"StatefulSet", "JobSet", "Mine"} <= held.hold_after_timeout
    assert configuration.ends(settings()).hold_after_timeout == frozenset()


def test_each_value_for_the_end_by_a_time_limit_means_something_else() -> None:
    """A value that the scheduler's record does not hold would be a setting without effect."""
    values = typing.get_args(groups.AfterTimeout)
    meant = {configuration.ends(settings(ends={"after_timeout": {"default": value}})) for value in values}
    assert len(meant) == len(values), f"ends() of daemon/configuration.py makes the same of some of {values}"


def test_ids_are_chosen_unless_slurm_counts() -> None:
    """`null` says so."""
    given = configuration.limits(settings()).ids
    assert given is not None
    assert (given.first, given.last) == (50_000_000, 66_999_999)
    slurm = {"url": "http://localhost", "token_file": "/t", "job_ids": None}
    assert configuration.limits(settings(slurm=slurm)).ids is None


def test_further_owner_kinds_are_read_in_their_version() -> None:
    """Group and version are one text in Kubernetes."""
    owners = [
        {"api_version": "example.com/v1beta1", "kind": "Thing", "plural": "things"},
        {"api_version": "v1", "kind": "Old", "plural": "olds"},
    ]
    first, second = configuration.owner_kinds(settings(owners=owners))
    assert (first.group, first.versions, first.kind, first.plural) == ("example.com", ("v1beta1",), "Thing", "things")
    assert (second.group, second.versions) == ("", ("v1",))


def around() -> ChainServices:
    """What hooks need."""
    return ChainServices(clock=VirtualClock())


def test_the_eligibility_hook_knows_the_schedulers_names_by_itself() -> None:
    """They need not be written twice; an explicit value wins."""
    made = configuration.changeable(settings(scheduler_names=["mine"]), around())
    assert made.chain.needs
    hooks = [{"name": "eligibility", "options": {"scheduler_names": ["other"]}}]
    assert configuration.changeable(settings(scheduler_names=["mine"], hooks=hooks), around()).chain.needs


FPGA = "example.com/fpga"
DOCUMENT = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
IGNORING = {"name": "NodeResourcesFit", "args": {"ignoredResources": [FPGA]}}
MANAGING = {"urlPrefix": "http://127.0.0.1:9", "managedResources": [{"name": FPGA, "ignoredByScheduler": True}]}


@pytest.mark.parametrize(
    ("hook", "options"),
    [
        ("kube-scheduler", {"predicates": [{"name": "PodFitsResources", "args": {"ignored_resources": [FPGA]}}]}),
        ("kube-scheduler", {"configuration": {**DOCUMENT, "profiles": [{"pluginConfig": [IGNORING]}]}}),
        ("kube-scheduler", {"configuration": {**DOCUMENT, "extenders": [MANAGING]}}),
        (
            "vela",
            {
                use: {"filters": [{"name": "ResourcesFit", "args": {"ignored_resources": [FPGA]}}]}
                for use in ("sampling", "decision")
            },
        ),
        ("eligibility", {"ignored_resources": [FPGA]}),
    ],
)
def test_a_resource_that_one_hook_ignores_keeps_a_pod_from_no_node(hook: str, options: Mapping[str, object]) -> None:
    """Nodes are not compared by it anywhere in the chain, neither before nor after the allocation."""
    seen = cluster([node("a")])
    one = workload(pod(requests={FPGA: "1", "cpu": "1"}, scheduler_name="mine"))
    services = dataclasses.replace(around(), seen=lambda: seen)
    made = configuration.changeable(
        settings(scheduler_names=["mine"], hooks=[{"name": hook, "options": options}]), services
    )
    plain = configuration.changeable(settings(scheduler_names=["mine"]), around())
    for chain in (made.chain, plain.chain):
        chain.see(dict.fromkeys(chain.needs, Objects()))
    short = plain.chain.plan(one, translated(), seen, now=0.0)
    assert isinstance(short, Wait)
    assert "Insufficient example.com/fpga" in short.message
    assert isinstance(made.chain.plan(one, translated(), seen, now=0.0), Plan)
    assert made.chain.verify(one, {one.lead.uid: "a"}, seen) is None


@pytest.mark.parametrize("hooks", [[{"name": "nobody"}], [{"name": "policy", "options": {"rules": 7}}]])
def test_a_hook_that_cannot_work_is_refused_with_its_name(hooks: list[Mapping[str, object]]) -> None:
    """Before anything changes."""
    with pytest.raises(errors.BadConfiguration, match=str(hooks[0]["name"])):
        configuration.changeable(settings(hooks=hooks), around())


def test_the_check_knows_what_pods_get_by_resource_claim() -> None:
    """From the table of the hook; what a stranger wrote there is no reason to fail."""
    rows = [{"device_class": "x.io", "gres": "gpu:a100"}, {"gres": 7}, "gpu"]
    hooks = [{"name": "device-claims", "options": {"classes": rows}}, {"name": "kai", "options": {"classes": rows}}]
    assert configuration.claimed_gres(settings(hooks=hooks)) == {"gpu:a100"}
    assert configuration.claimed_gres(settings(hooks=[{"name": "device-claims", "options": {"classes": 7}}])) == set()


def test_a_request_is_fitted_to_what_slurm_has_and_what_was_derived_of_it_is_kept() -> None:
    """As long as nodes and partitions are the same objects, nothing is worked out again."""
    fit = configuration.settle()
    partition = Partition(name="debug", states=frozenset({"UP"}), nodes=("n1",), default=True, default_minutes=30)
    seen = dataclasses.replace(EMPTY, partitions=(partition,), slurm_nodes={"n1": translating.node()})
    longer = dataclasses.replace(seen, partitions=(dataclasses.replace(partition, default_minutes=60),))
    fitted = [fit(translating.translated(), one, (frozenset({"n1"}),)) for one in (seen, seen, longer)]
    assert [one.request.time_limit_minutes for one in fitted if isinstance(one, Translated)] == [30, 30, 60]


def test_the_adapter_is_told_what_the_settings_say() -> None:
    """And caches no nodes of Slurm: a caller that asks again needs current ones."""
    slurm = {
        "url": "http://localhost",
        "token_file": "/t",
        "user_name": "u",
        "read_timeout_seconds": 3,
        "connections": 2,
        "max_answer_mib": 3,
    }
    given = app.adapter_settings(settings(slurm=slurm, scheduling={"workers": 5}))
    assert (given.url, given.user_name, given.read_timeout) == ("http://localhost", "u", 3)
    assert given.connections == 7
    assert given.max_answer_bytes == 3 << 20
    assert given.cache_ttl == 0


def test_records_of_creators_count_where_the_settings_say_so() -> None:
    """They are forged easily where no webhook has reviewed every object."""
    assert not configuration.workloads(settings()).creators
    assert configuration.workloads(settings(admission={"trust_created_by": True})).creators


def test_each_key_of_admission_is_looked_at() -> None:
    """By the rules of the webhook."""
    values = {"on_error": "allow", "accounts": ["restorer"], "controllers": ["maker"]}
    given = settings(admission=values, unhonoured="ignore", scheduler_names=["ours"])
    config = configuration.changeable(given, ChainServices(clock=VirtualClock(), threads=False))
    found = admission_api.rules(given, config, lambda name: name == "team")
    config.chain.close()
    assert (found.lenient, found.strict, found.scheduler_names) == (True, False, ("ours",))
    assert (found.trusts("restorer"), found.trusts("other"), found.controls("maker")) == (True, False, True)
    assert (found.managed("team"), found.translation) == (True, config.rules)


@pytest.mark.parametrize(
    ("taint", "toleration"),
    [
        (None, None),
        ("a/b=c:NoExecute", {"key": "a/b", "operator": "Equal", "value": "c", "effect": "NoExecute"}),
        ("a/b:NoSchedule", {"key": "a/b", "operator": "Exists", "effect": "NoSchedule"}),
    ],
)
def test_t13_pods_tolerate_the_taint_of_managed_nodes(taint: str | None, toleration: object) -> None:
    """Those that the webhook reviews."""
    given = settings(nodes={"managed_taint": taint})
    config = configuration.changeable(given, ChainServices(clock=VirtualClock(), threads=False))
    assert admission_api.rules(given, config, lambda _: False).toleration == toleration
    config.chain.close()
