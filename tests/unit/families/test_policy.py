"""Users set by annotation what the policy allows them, and get its defaults where they say nothing."""

import dataclasses
import pathlib
from typing import Any

import pytest

from slurm_bridge import errors
from slurm_bridge.families.policy import Policy, PolicyOptions
from slurm_bridge.hooks import base, calls, registry
from slurm_bridge.hooks.chain import Chain, Plan
from slurm_bridge.model import creator, names
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.translate import annotations
from slurm_bridge.translate.translator import Value
from tests.unit.hooks.builders import (
    Around,
    annotated,
    cluster,
    gang,
    node,
    partition,
    pod,
    translated,
    workload,
)

ONE = cluster([node("a")])

#: The annotations that need a rule, and the field of the request that each becomes.
GUARDED = {row.key: row.field for row in annotations.ANNOTATIONS if row.guarded}


def plan(
    around: Around, *values: Value, rules: Any = None, namespace: str = "team", account: str = "", **fields: Any
) -> Plan | Wait | Reject:
    """What becomes of a pod that says this."""
    options = PolicyOptions() if rules is None else PolicyOptions.model_validate({"rules": rules})
    chain = Chain([calls.Hook(name="policy", hook=Policy(options), budget_seconds=60)], around.make())
    asked = workload(pod(service_account_name=account), namespace=namespace)
    return chain.plan(asked, translated(*values, **fields), ONE, now=0.0)


@pytest.mark.parametrize("key", GUARDED)
def test_s1_what_needs_a_rule_is_refused_without_one(key: str, around: Around) -> None:
    """The message names object, key, value, and for whom it is refused."""
    found = plan(around, annotated(GUARDED[key], "1234", key))
    assert isinstance(found, Reject)
    assert found.reason == "NotAllowed"
    assert found.message == (
        f"annotation {key} of Pod team/p: {key} '1234' is not allowed for service account default in namespace team; "
        "no value is allowed"
    )


@pytest.mark.parametrize("key", GUARDED)
def test_a_rule_opens_it(key: str, around: Around) -> None:
    """For every value, or for some."""
    value = annotated(GUARDED[key], "1234", key)
    assert isinstance(plan(around, value, rules=[{"allow": {key: ["*"]}}]), Plan)
    assert isinstance(plan(around, value, rules=[{"allow": {key: ["12?4", "x"]}}]), Plan)
    found = plan(around, value, rules=[{"allow": {key: ["x", "y*"]}}])
    assert isinstance(found, Reject)
    assert found.message.endswith("allowed here: x, y*")


def test_every_guarded_key_can_be_allowed() -> None:
    """The table of annotations and the policy's keys are the same, and partition besides."""
    for key in (*GUARDED, "partition"):
        PolicyOptions.model_validate({"rules": [{"allow": {key: ["*"]}}]})


@pytest.mark.parametrize("page", ["docs/hooks.md", "docs/security.md", "deploy/config.yaml"])
def test_every_guarded_key_is_named_where_operators_read_of_it(page: str) -> None:
    """In the sentence that lists them."""
    text = (pathlib.Path(__file__).resolve().parents[3] / page).read_text()
    written = "`{}`" if page.endswith(".md") else "{}"
    missing = [key for key in GUARDED if written.format(key) not in text]
    assert not missing, f"{page} does not name {', '.join(missing)}"


@pytest.mark.parametrize(("value", "allowed"), [("1", True), ("1000", True), ("1001", False), ("-1", False)])
def test_priority_up_to(value: str, allowed: bool, around: Around) -> None:
    """A bound is enough for a number."""
    found = plan(around, annotated("priority", value), rules=[{"allow": {"priority": {"max": 1000}}}])
    assert isinstance(found, Plan) is allowed
    assert allowed or "allowed here: at most 1000" in found.message  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("rule", "matches"),
    [
        ({}, True),
        ({"namespaces": ["team"]}, True),
        ({"namespaces": ["te*", "x"]}, True),
        ({"namespaces": ["other"]}, False),
        ({"service_accounts": ["runner"]}, True),
        ({"service_accounts": ["r*"], "namespaces": ["team"]}, True),
        ({"service_accounts": ["other"], "namespaces": ["team"]}, False),
        ({"service_accounts": ["default"]}, False),
    ],
)
def test_for_whom_a_rule_is(rule: dict[str, Any], matches: bool, around: Around) -> None:
    """Namespace and service account both have to match."""
    rules = [{**rule, "allow": {"qos": ["high"]}}]
    found = plan(around, annotated("qos", "high"), rules=rules, account="runner")
    assert isinstance(found, Plan) is matches


def test_matching_rules_count_together(around: Around) -> None:
    """One allows what the other does not."""
    rules = [{"allow": {"qos": ["low"]}}, {"namespaces": ["team"], "allow": {"qos": ["high"], "account": ["a"]}}]
    assert isinstance(plan(around, annotated("qos", "high"), annotated("account", "a"), rules=rules), Plan)


def test_all_refusals_at_once(around: Around) -> None:
    """Nobody has to mend them one by one."""
    found = plan(around, annotated("qos", "high"), annotated("account", "physics"))
    assert isinstance(found, Reject)
    assert [word in found.message for word in ("qos 'high'", "account 'physics'")] == [True, True]


def test_partitions_are_free_until_a_rule_lists_them(around: Around) -> None:
    """And then each of a list has to be allowed."""
    wanted = annotated("partition", "debug,big")
    assert isinstance(plan(around, wanted), Plan)
    assert isinstance(plan(around, wanted, rules=[{"allow": {"partition": ["debug", "b*"]}}]), Plan)
    assert isinstance(plan(around, wanted, rules=[{"allow": {"partition": ["debug"]}}]), Reject)
    others = [{"namespaces": ["other"], "allow": {"partition": ["debug"]}}]
    assert isinstance(plan(around, wanted, rules=others), Plan)


CLOSED = cluster(
    [node("a")], partition("debug", "a", default=True), partition("ops", "a", root_only=True), partition("big", "a")
)


def among(
    around: Around, rules: Any, value: str, *, key: str = "partition", where: Any = CLOSED
) -> Plan | Wait | Reject:
    """What becomes of a pod with this partition where `ops` is root's."""
    options = PolicyOptions.model_validate({"rules": rules})
    chain = Chain([calls.Hook(name="policy", hook=Policy(options), budget_seconds=60)], around.make())
    wanted = annotated("partition", value, key) if key else Value(field="partition", value=value, source="setting")
    return chain.plan(workload(), translated(wanted), where, now=0.0)


@pytest.mark.security("rights")
@pytest.mark.parametrize("value", ["ops", "debug,ops", "ops, big"])
@pytest.mark.parametrize(
    "rules", [[], [{"allow": {"partition": ["*"]}}], [{"namespaces": ["x"], "allow": {"partition": ["ops"]}}]]
)
def test_a_partition_of_root_needs_a_rule_that_names_it(rules: Any, value: str, around: Around) -> None:
    """A pod enters a partition that is RootOnly in Slurm only where a rule of the policy names it, also in a list."""
    found = among(around, rules, value)
    assert isinstance(found, Reject)
    assert found.reason == "NotAllowed"
    assert found.message == (
        "annotation partition of Pod team/p: partition 'ops' is RootOnly in Slurm, and no rule of the policy names it "
        "for service account default in namespace team"
    )


@pytest.mark.parametrize("rule", ["ops", "o*", "op?"])
def test_a_rule_opens_a_partition_of_root(rule: str, around: Around) -> None:
    """By its name or by a pattern that says more than everything."""
    assert isinstance(among(around, [{"allow": {"partition": [rule, "debug"]}}], "debug,ops"), Plan)


def test_other_partitions_stay_free(around: Around) -> None:
    """Beside one that is root's; and what the configuration chooses needs no rule."""
    assert isinstance(among(around, [], "debug,big"), Plan)
    assert isinstance(among(around, [], "ops", key=""), Plan)


def test_a_partition_waits_until_slurm_has_told_its_partitions(around: Around) -> None:
    """What is not known yet is not open."""
    unread = dataclasses.replace(CLOSED, partitions=())
    found = among(around, [], "debug", where=unread)
    assert isinstance(found, Wait)
    assert found.reason == "SlurmUnavailable"
    assert isinstance(plan(around), Plan)


def test_defaults_of_the_bridge_are_nobodys_wish(around: Around) -> None:
    """What configuration sets needs no rule."""
    value = Value(field="account", value="physics", source="setting defaults.account")
    assert isinstance(plan(around, value), Plan)


def test_free_keys_stay_free(around: Around) -> None:
    """The policy knows only what it guards."""
    assert isinstance(plan(around, annotated("licenses", "matlab:1"), annotated("name", "x", "job-name")), Plan)


def test_the_shipped_policy_lets_the_shipped_example_run(around: Around) -> None:
    """Account schedmd, in namespace slurm-bridge, and nothing else."""
    assert isinstance(plan(around, annotated("account", "schedmd"), namespace="slurm-bridge"), Plan)
    assert isinstance(plan(around, annotated("account", "root"), namespace="slurm-bridge"), Reject)
    assert isinstance(plan(around, annotated("account", "schedmd")), Reject)


RULES = [
    {"namespaces": ["team"], "defaults": {"account": "physics"}},
    {"defaults": {"account": "everybody", "qos": "low"}},
]


def test_defaults_of_rules(around: Around) -> None:
    """The first rule that names a field decides on it; it replaces the bridge's own default."""
    value = Value(field="account", value="d", source="setting defaults.account")
    found = plan(around, value, rules=RULES, account="x")
    assert isinstance(found, Plan)
    assert (found.request.account, found.request.qos) == ("physics", "low")
    assert {value.field: value.source for value in found.values} == {"account": "hook policy", "qos": "hook policy"}


def test_users_win_over_defaults(around: Around) -> None:
    """Where a rule allows what they say."""
    rules = [{**RULES[0], "allow": {"account": ["*"]}}]
    found = plan(around, annotated("account", "chemistry"), rules=rules)
    assert isinstance(found, Plan)
    assert found.request.account is None, "the translator has set it already; the policy must not touch it"


class TestSeveralServiceAccounts:
    """A gang whose members run under different ones gets no more than all of them have."""

    def planned(
        self, around: Around, rules: Any, *values: Value, accounts: str = "leader worker worker", **fields: Any
    ) -> Plan | Wait | Reject:
        members = [pod(f"p-{number}", service_account_name=one) for number, one in enumerate(accounts.split())]
        chain = Chain(
            [calls.Hook(name="policy", hook=Policy(PolicyOptions.model_validate({"rules": rules})), budget_seconds=60)],
            around.make(),
        )
        return chain.plan(gang(*members), translated(*values, **fields), ONE, now=0.0)

    def test_each_of_them_has_to_be_allowed_a_value(self, around: Around) -> None:
        """The refusal names the one that is not."""
        rules = [{"service_accounts": ["leader"], "allow": {"user-id": ["alice"]}}]
        found = self.planned(around, rules, annotated("user", "alice", "user-id"))
        assert isinstance(found, Reject)
        assert "is not allowed for service account worker in namespace team" in found.message
        assert "leader" not in found.message
        both = [*rules, {"service_accounts": ["work*"], "allow": {"user-id": ["*"]}}]
        assert isinstance(self.planned(around, both, annotated("user", "alice", "user-id")), Plan)

    def test_partitions_that_a_rule_of_one_lists(self, around: Around) -> None:
        """A rule that narrows one member narrows the job."""
        rules = [{"service_accounts": ["worker"], "allow": {"partition": ["debug"]}}]
        assert isinstance(self.planned(around, rules, annotated("partition", "big")), Reject)

    def test_different_defaults_are_refused(self, around: Around) -> None:
        """One job cannot belong to two users; nobody chooses silently."""
        rules = [
            {"service_accounts": ["leader"], "defaults": {"user": "alice"}},
            {"defaults": {"account": "physics"}},
        ]
        found = self.planned(around, rules)
        assert isinstance(found, Reject)
        assert found.message == (
            "members have different defaults for user: 'alice' for service account leader in namespace team, "
            "none for service account worker in namespace team; one job can have only one"
        )

    def test_what_the_user_says_needs_no_default(self, around: Around) -> None:
        """Where all of them may say it, different defaults do not matter."""
        rules = [
            {"service_accounts": ["leader"], "defaults": {"account": "physics"}},
            {"allow": {"account": ["*"]}, "defaults": {"qos": "low"}},
        ]
        found = self.planned(around, rules, annotated("account", "maths"))
        assert isinstance(found, Plan)
        assert found.request.qos == "low"

    def test_equal_defaults_are_given(self, around: Around) -> None:
        """As for a gang under one service account."""
        found = self.planned(around, [{"defaults": {"account": "physics"}}])
        assert isinstance(found, Plan)
        assert found.request.account == "physics"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rules": [{"namespace": ["a"]}]}, "options.rules.0.namespace: Extra inputs are not permitted"),
        ({"rules": [{"namespaces": "a"}]}, "options.rules.0.namespaces: Input should be a valid tuple"),
        ({"rules": [{"allow": {"color": ["a"]}}]}, "options.rules.0.allow.color"),
        ({"rules": [{"allow": {"qos": {"max": 5}}}]}, "only priority takes max"),
        ({"rules": [{"allow": {"priority": {"max": 0}}}]}, "greater than or equal to 1"),
        ({"rules": [{"defaults": {"colour": "a"}}]}, "options.rules.0.defaults.colour"),
        ({"rule": []}, "options.rule: Extra inputs are not permitted"),
        ({"rules": [{"defaults": {"user": "root"}}]}, "options.rules.0.defaults.user: Value error, 'root' is refused"),
        ({"rules": [{}, {"defaults": {"group": 0}}]}, "options.rules.1.defaults.group: Value error, '0' is refused"),
        ({"rules": [{"defaults": {"account": "a b"}}]}, "options.rules.0.defaults.account: Value error, 'a b'"),
        ({"rules": [{"defaults": {"partition": "a,,b"}}]}, "options.rules.0.defaults.partition: Value error, 'a,,b'"),
        ({"rules": [{"defaults": {"licenses": "a b"}}]}, "options.rules.0.defaults.licenses: Value error, 'a b'"),
        ({"rules": [{"defaults": {"constraints": "a b"}}]}, "options.rules.0.defaults.constraints: Value error"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], said: str, around: Around) -> None:
    """With the hook and the key."""
    config = registry.HookConfig(name="policy", options=options)
    with pytest.raises(Exception, match="hook policy: ") as caught:
        registry.build([config], around.make(), {})
    assert said in str(caught.value)


@pytest.mark.security("rights")
@pytest.mark.parametrize("who", ["root", "Root", "SLURM", "munge", "systemd-resolve", "daemon", "0", 99, 65534, "998"])
def test_a_default_of_a_rule_names_nobody_of_the_system(who: str | int, around: Around) -> None:
    """A policy whose defaults name root, a system account or a number below 1000 is refused when it is loaded."""
    rules = {"rules": [{"defaults": {"user": who}}]}
    with pytest.raises(errors.BadConfiguration) as caught:
        registry.build([registry.HookConfig(name="policy", options=rules)], around.make(), {})
    said = f"hook policy: options.rules.0.defaults.user: Value error, '{who}' is refused: use a name other than"
    assert said in str(caught.value)


def test_a_default_of_a_rule_may_be_a_number() -> None:
    """As YAML reads it, and as Slurm takes it."""
    rules = PolicyOptions.model_validate({"rules": [{"defaults": {"user": 5001, "group": "05002"}}]}).rules
    assert (rules[0].defaults.user, rules[0].defaults.group) == ("5001", "5002")


def test_the_answer_without_rules_is_shared() -> None:
    """Most workloads get nothing from the policy, at no cost."""
    policy = Policy(PolicyOptions())
    asked = base.Ask(workload=workload(), request=translated().request)
    first, second = (policy.express(_NO_SESSION, asked) for _ in range(2))
    assert first is second


_NO_SESSION: Any = None


class TestCreators:
    """Rules for users that created workloads."""

    def found(self, around: Around, user: str, *values: Value, rules: Any, counts: bool = True) -> Plan | Wait | Reject:
        """What becomes of a pod that this user created."""
        chain = Chain(
            [calls.Hook(name="policy", hook=Policy(PolicyOptions.model_validate({"rules": rules})), budget_seconds=60)],
            around.make(),
        )
        record = {names.ANNOTATION_CREATED_BY: creator.write(user, ("physics",))} if user else {}
        asked = dataclasses.replace(workload(pod(metadata={"annotations": record})), creators={} if counts else None)
        return chain.plan(asked, translated(*values), ONE, now=0.0)

    @pytest.mark.security("identity")
    def test_a_rule_for_users_is_for_recorded_creators_only(self, around: Around) -> None:
        """A rule of the policy for users or groups applies only where the record of the creator counts."""
        value = annotated("account", "physics", "account")
        for who in ({"users": ["al*"]}, {"groups": ["physics"]}):
            rules = [{"allow": {"account": ["*"]}, **who}]
            assert isinstance(self.found(around, "alice", value, rules=rules), Plan)
            assert isinstance(self.found(around, "", value, rules=rules), Reject)
            assert isinstance(self.found(around, "alice", value, rules=rules, counts=False), Reject)
        refused = self.found(around, "bob", value, rules=[{"users": ["al*"], "allow": {"account": ["*"]}}])
        assert isinstance(refused, Reject)
        assert "service account default in namespace team, created by bob; no value is allowed" in refused.message

    @pytest.mark.parametrize(
        ("pattern", "user", "job_user"),
        [
            ("oidc:(.*)", "oidc:alice", "alice"),
            ("oidc:(.*)@uni", "oidc:alice@uni", "alice"),
            (".*", "alice", "alice"),
            ("oidc:(.*)", "alice", None),
            ("oidc:(.*)", "oidc:root", None),
            ("oidc:(.*)", "oidc:1500", None),
            ("oidc:(.*)", "oidc:", None),
            ("(x)?.*", "alice", None),
            (".*", "system:serviceaccount:team:sim", None),
        ],
    )
    def test_the_job_belongs_to_the_creator(
        self, around: Around, pattern: str, user: str, job_user: str | None
    ) -> None:
        """By a pattern; numbers and accounts of the system are no users of jobs."""
        found = self.found(around, user, rules=[{"job_user": pattern}])
        assert isinstance(found, Plan)
        assert found.request.user == job_user

    def test_the_first_rule_that_names_a_user_decides(self, around: Around) -> None:
        """A default of an earlier rule, or of the same."""
        for rules in (
            [{"defaults": {"user": "shared"}}, {"job_user": ".*"}],
            [{"defaults": {"user": "shared"}, "job_user": ".*"}],
            [{"job_user": "x"}, {"defaults": {"user": "shared"}}],
        ):
            found = self.found(around, "alice", rules=rules)
            assert isinstance(found, Plan)
            assert found.request.user == "shared"

    def test_a_gang_of_several_creators_has_no_common_user(self, around: Around) -> None:
        """One job has one user."""
        records = [{names.ANNOTATION_CREATED_BY: creator.write(user, ())} for user in ("alice", "bob")]
        pods = [pod(f"p{number}", metadata={"annotations": one}) for number, one in enumerate(records)]
        options = PolicyOptions.model_validate({"rules": [{"job_user": ".*"}]})
        chain = Chain([calls.Hook(name="policy", hook=Policy(options), budget_seconds=60)], around.make())
        found = chain.plan(dataclasses.replace(gang(*pods), creators={}), translated(), ONE, now=0.0)
        assert isinstance(found, Reject)
        assert "members have different defaults for user" in found.message

    def test_a_pattern_that_is_none_is_refused(self) -> None:
        """When the configuration is loaded."""
        with pytest.raises(ValueError, match="is no regular expression"):
            PolicyOptions.model_validate({"rules": [{"job_user": "("}]})
