"""What Slurm says of a node is on the Kubernetes node, and what administrators have set there stays."""

from typing import Any

import pytest

from slurm_bridge.controllers.nodes import availability
from slurm_bridge.controllers.nodes.availability import (
    ANNOTATION_CORDONED,
    CONDITION,
    LABEL_REASON,
    LABEL_STATE,
    TAINT,
    Marking,
    OutOfService,
)
from slurm_bridge.model.meta import Condition, ObjectMeta
from slurm_bridge.model.node import Node, NodeSpec, NodeStatus, Taint
from slurm_bridge.model.slurmnode import SlurmNode

NOW = "2026-01-01T00:00:00Z"
OURS = "slurm-bridge(c1)"
DRAINED = OutOfService(word="DRAIN", reason="bad disk")
THEIRS = Taint(key="site/own", effect="NoExecute", time_added="2025-12-31T00:00:00Z")


def slurm_node(*states: str, reason: str = "") -> SlurmNode:
    return SlurmNode(name="n1", states=frozenset(states), cpus=4, memory_mib=4000, reason=reason)


def node(
    *,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    unschedulable: bool = False,
    taints: tuple[Taint, ...] = (),
    conditions: tuple[Condition, ...] = (),
) -> Node:
    return Node(
        metadata=ObjectMeta(
            name="n1", uid="u1", resource_version="7", labels=labels or {}, annotations=annotations or {}
        ),
        spec=NodeSpec(unschedulable=unschedulable, taints=taints),
        status=NodeStatus(conditions=conditions),
    )


def applied(there: Node, writes: availability.Writes) -> Node:
    """The node after the API server has taken the writes."""
    metadata, spec = writes.node.get("metadata", {}), writes.node.get("spec", {})
    conditions = {one.type: one for one in there.status.conditions}
    for one in writes.status.get("status", {}).get("conditions", ()):
        conditions[one["type"]] = Condition(
            type=one["type"],
            status=one["status"],
            reason=one["reason"],
            message=one["message"],
            last_transition_time=one["lastTransitionTime"],
        )
    return node(
        labels=_merged(there.metadata.labels, metadata.get("labels", {})),
        annotations=_merged(there.metadata.annotations, metadata.get("annotations", {})),
        unschedulable=spec.get("unschedulable", there.spec.unschedulable),
        taints=tuple(
            Taint(key=one["key"], effect=one["effect"], value=one.get("value", ""), time_added=one.get("timeAdded"))
            for one in spec["taints"]
        )
        if "taints" in spec
        else there.spec.taints,
        conditions=tuple(conditions.values()),
    )


def _merged(before: dict[str, str], changes: dict[str, Any]) -> dict[str, str]:
    return {key: value for key, value in {**before, **changes}.items() if value is not None}


def follow(there: Node, state: OutOfService | None, marking: Marking) -> Node:
    """The node at rest: a second look writes nothing."""
    done = applied(there, availability.writes(there, state, marking, NOW, by="c1"))
    assert not availability.writes(done, state, marking, NOW, by="c1")
    return done


class TestState:
    @pytest.mark.parametrize(
        ("states", "word"),
        [
            (("IDLE", "EXTERNAL"), None),
            (("MIXED", "EXTERNAL", "RESERVED", "PLANNED"), None),
            (("IDLE", "DRAIN", "EXTERNAL"), "DRAIN"),
            (("DOWN", "DRAIN"), "DOWN"),
            (("IDLE", "FAIL"), "FAIL"),
            (("IDLE", "MAINTENANCE", "RESERVED"), "MAINTENANCE"),
            (("IDLE", "NOT_RESPONDING", "EXTERNAL"), "NOT_RESPONDING"),
            (("IDLE", "NOT_RESPONDING"), None),
            (("SOMETHING_NEW",), None),
        ],
    )
    def test_words_that_count(self, states: tuple[str, ...], word: str | None) -> None:
        """A node that takes no jobs has the strongest word for it; other words, known or not, mean nothing."""
        found = availability.unavailable(slurm_node(*states), OURS)
        assert (found and found.word) == word

    def test_a_drain_of_the_bridge_is_not_reported_back(self) -> None:
        """A node that is drained because it is cordoned in Kubernetes does not get a condition for that."""
        assert availability.unavailable(slurm_node("IDLE", "DRAIN", reason=f"{OURS}: cordoned"), OURS) is None
        assert availability.unavailable(slurm_node("DOWN", "DRAIN", reason=f"{OURS}: cordoned"), OURS) is not None

    def test_a_drain_of_another_bridge_is_an_administrators(self) -> None:
        """The reason of another cluster's bridge is a reason like any other."""
        assert availability.unavailable(slurm_node("DRAIN", reason="slurm-bridge(c2): cordoned"), OURS) is not None

    def test_a_reservation_of_an_administrator_closes_nothing(self) -> None:
        """The node says whose it is, and gets neither taint nor cordon: jobs of the reservation start there."""
        reserved = slurm_node("IDLE", "RESERVED")
        assert availability.unavailable(reserved, OURS) is None
        state = availability.unavailable(reserved, OURS, "course")
        shown = follow(node(), state, Marking(taint="NoSchedule", cordon=True))
        assert shown.metadata.labels == {LABEL_STATE: "RESERVED", LABEL_REASON: "course"}
        assert (shown.spec.taints, shown.spec.unschedulable) == ((), False)

    def test_a_node_that_slurm_does_not_know_is_not_unavailable(self) -> None:
        """Kubernetes nodes outside of Slurm are none of the bridge's business."""
        assert availability.unavailable(None, OURS) is None

    def test_a_hostile_reason_is_bounded_and_printable(self) -> None:
        """Any operator of Slurm writes reasons: endless ones and control characters reach neither label nor message."""
        odd = OutOfService(word="DRAIN", reason="\x1b[31m" + "é" * 5000 + "\n")
        assert len(odd.label) <= 63
        assert len(odd.message) < 512
        assert odd.message.isprintable()


class TestWrites:
    def test_a_node_in_service_is_not_written(self) -> None:
        """Nothing is sent for a node without marks on which Slurm runs jobs."""
        assert not availability.writes(
            node(taints=(THEIRS,)), None, Marking(taint="NoSchedule", cordon=True), NOW, by="c1"
        )

    def test_kubectl_shows_the_state(self) -> None:
        """Labels have the state and the reason, and the condition has the words."""
        done = follow(node(), DRAINED, Marking())
        assert done.metadata.labels == {LABEL_STATE: "DRAIN", LABEL_REASON: "bad-disk"}
        (condition,) = done.status.conditions
        assert (condition.type, condition.status, condition.reason) == (CONDITION, "True", "DRAIN")
        assert condition.message == "Slurm node is DRAIN, reason: bad disk: Slurm starts no new jobs on it"

    def test_marks_of_another_bridge_stay(self) -> None:
        """Of two bridges with one Kubernetes cluster, the second neither removes nor changes what the first has set."""
        marking = Marking(taint="NoSchedule", cordon=True)
        theirs = follow(node(), DRAINED, marking)
        assert not availability.writes(theirs, None, marking, NOW, by="c2")
        assert not availability.writes(theirs, OutOfService(word="DOWN"), marking, NOW, by="c2")

    def test_a_cordon_is_for_one_version_of_the_node(self) -> None:
        """An administrator's cordon of the same moment is not taken over: the write is refused."""
        written = availability.writes(node(), DRAINED, Marking(cordon=True), NOW, by="c1").node
        assert written["metadata"]["resourceVersion"] == "7"

    def test_all_goes_when_slurm_runs_jobs_again(self) -> None:
        """Labels, taint and cordon are removed, and the condition is False; what administrators have set stays."""
        marking = Marking(taint="NoSchedule", cordon=True)
        marked = follow(node(labels={"own": "x"}, taints=(THEIRS,)), DRAINED, marking)
        assert marked.spec.taints == (THEIRS, Taint(key=TAINT, effect="NoSchedule", value="DRAIN"))
        assert marked.spec.unschedulable
        freed = follow(marked, None, marking)
        assert (freed.metadata.labels, freed.metadata.annotations) == ({"own": "x"}, {})
        assert (freed.spec.taints, freed.spec.unschedulable) == ((THEIRS,), False)
        assert freed.status.conditions[0].status == "False"

    def test_a_list_of_taints_is_for_one_version_of_the_node(self) -> None:
        """A taint that another client adds at the same moment is not lost: the write is refused."""
        written = availability.writes(node(taints=(THEIRS,)), DRAINED, Marking(taint="NoExecute"), NOW, by="c1").node
        assert written["metadata"]["resourceVersion"] == "7"
        assert written["spec"]["taints"][0]["timeAdded"] == THEIRS.time_added

    def test_an_administrators_cordon_is_never_ended(self) -> None:
        """A node that was cordoned before Slurm drained it stays cordoned afterwards."""
        marking = Marking(cordon=True)
        marked = follow(node(unschedulable=True), DRAINED, marking)
        assert ANNOTATION_CORDONED not in marked.metadata.annotations
        assert follow(marked, None, marking).spec.unschedulable

    def test_an_administrators_uncordon_lasts_as_long_as_the_state(self) -> None:
        """Who uncordons a node that Slurm has drained is not overruled, and may cordon it again."""
        marking = Marking(cordon=True)
        cordoned = follow(node(), DRAINED, marking)
        lifted = follow(node(annotations=dict(cordoned.metadata.annotations)), DRAINED, marking)
        assert not lifted.spec.unschedulable
        assert not follow(lifted, OutOfService(word="DOWN"), marking).spec.unschedulable
        again = node(annotations=dict(lifted.metadata.annotations), unschedulable=True)
        freed = follow(again, None, marking)
        assert freed.spec.unschedulable
        assert not freed.metadata.annotations

    def test_marks_that_are_switched_off_go(self) -> None:
        """Without taint and cordon in the configuration, those of the bridge are removed."""
        marked = follow(node(), DRAINED, Marking(taint="NoSchedule", cordon=True))
        plain = follow(marked, DRAINED, Marking())
        assert (plain.spec.taints, plain.spec.unschedulable) == ((), False)
        assert plain.metadata.labels[LABEL_STATE] == "DRAIN"

    def test_a_changed_reason_keeps_the_time_of_the_transition(self) -> None:
        """The condition says since when the node is unavailable."""
        marked = follow(node(), DRAINED, Marking())
        later = availability.writes(
            marked, OutOfService(word="DRAIN", reason="worse"), Marking(), "2026-02-02T00:00:00Z", by="c1"
        )
        assert later.status["status"]["conditions"][0]["lastTransitionTime"] == NOW
