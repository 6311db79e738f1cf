"""The table in the docstring of `decide`, row by row."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.controllers.nodes import marks
from slurm_bridge.controllers.nodes.decide import NodeAction, Verb, decide
from slurm_bridge.controllers.nodes.desired_nodes import DesiredNode, Unregistrable
from slurm_bridge.controllers.nodes.facts import NodePair
from slurm_bridge.controllers.nodes.marks import DrainReasons, RegistrationRecord
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.node import Node, NodeSpec
from slurm_bridge.model.slurmnode import NodeShape, SlurmNode

REASONS = DrainReasons("k1")
SHAPE = NodeShape(cores=8, memory_mib=16000)
DESIRED = DesiredNode(address="10.0.0.1", shape=SHAPE, features=("slurm-bridge",))
OTHER_SHAPE = dataclasses.replace(DESIRED, shape=NodeShape(cores=4, memory_mib=16000))
OTHER_FEATURES = dataclasses.replace(DESIRED, features=("slurm-bridge", "fast"))
RECORD = RegistrationRecord(cluster="k1", shape=marks.digest(SHAPE), features=("slurm-bridge",))
WRONG, EARLY = Unregistrable(message="wrong"), Unregistrable(message="early", early=True)

NODE = Node(metadata=ObjectMeta(name="n1"))
CORDONED = Node(metadata=ObjectMeta(name="n1"), spec=NodeSpec(unschedulable=True))

IDLE, USED = frozenset({"IDLE", "EXTERNAL", "DYNAMIC_NORM"}), frozenset({"MIXED", "EXTERNAL", "DYNAMIC_NORM"})


def slurm(*words: str, used: bool = False, reason: str = "") -> SlurmNode:
    states = (USED if used else IDLE) | set(words)
    return SlurmNode(name="n1", states=states, cpus=8, memory_mib=16000, used_cpus=1 if used else 0, reason=reason)


def facts(**given: Any) -> NodePair:
    """A registered node that is in Slurm as it is to be; `slurm` tells whether the reason there is ours."""
    usual: dict[str, Any] = {"name": "n1", "node": NODE, "bridged": True, "asked": DESIRED, "slurm": slurm()}
    found = {**usual, "record": RECORD, **given}
    if found["slurm"] is None:
        found["record"] = None
    ours = found["slurm"] is not None and REASONS.ours(found["slurm"].reason)
    return NodePair(**{"our_reason": ours, **found})


OURS, THEIRS = REASONS.cordoned, "bad fan"
GONE = {"node": None, "asked": None, "bridged": False}
UNLABELLED = {"asked": None, "record": None}

ROWS = (
    ("several claim the name", facts(rivals=(NODE, NODE), node=None), Verb.TELL),
    ("several that nothing is done for", facts(rivals=(NODE, NODE), node=None, bridged=False), Verb.NOTHING),
    ("registered, cannot be read", facts(slurm=None, unreadable=True), Verb.WAIT),
    ("registered, absent, wrong", facts(slurm=None, asked=WRONG), Verb.TELL),
    ("registered, absent, early", facts(slurm=None, asked=EARLY), Verb.WAIT),
    ("registered, absent, former node there", facts(slurm=None, former="n0"), Verb.WAIT),
    ("registered, absent", facts(slurm=None), Verb.CREATE),
    ("not registered, absent", facts(slurm=None, asked=None), Verb.NOTHING),
    ("another bridge's, registered", facts(record=None, foreign=True), Verb.TELL),
    ("another bridge's", facts(record=None, foreign=True, asked=None), Verb.NOTHING),
    ("another bridge's, cordoned", facts(record=None, foreign=True, node=CORDONED, asked=None), Verb.NOTHING),
    ("added a moment ago", facts(record=None, added="0" * 16), Verb.ADOPT),
    ("gone, in service", facts(**GONE), Verb.DRAIN),
    ("gone, drained by us, idle", facts(**GONE, slurm=slurm("DRAIN", reason=OURS)), Verb.DELETE),
    ("gone, drained by others, idle", facts(**GONE, slurm=slurm("DRAIN", reason=THEIRS)), Verb.DELETE),
    ("gone, drained, jobs", facts(**GONE, slurm=slurm("DRAIN", used=True, reason=OURS)), Verb.WAIT),
    ("gone, down", facts(**GONE, slurm=slurm("DOWN")), Verb.DELETE),
    ("gone, and nothing is registered any more", facts(**GONE, registering=False), Verb.NOTHING),
    ("other resources, out by others", facts(asked=OTHER_SHAPE, slurm=slurm("DOWN", reason=THEIRS)), Verb.WAIT),
    ("other resources, in service", facts(asked=OTHER_SHAPE), Verb.DRAIN),
    ("other resources, drained by us", facts(asked=OTHER_SHAPE, slurm=slurm("DRAIN", reason=OURS)), Verb.DELETE),
    ("... with jobs", facts(asked=OTHER_SHAPE, slurm=slurm("DRAIN", reason=OURS, used=True)), Verb.WAIT),
    ("cordoned, in service", facts(node=CORDONED), Verb.DRAIN),
    ("cordoned, not bridged", facts(**UNLABELLED, node=CORDONED, bridged=False), Verb.NOTHING),
    ("cordoned, and cordons do not drain", facts(node=CORDONED, draining=False), Verb.NOTHING),
    ("cordoned, drained by us", facts(node=CORDONED, slurm=slurm("DRAIN", reason=OURS)), Verb.NOTHING),
    ("cordoned, drained by others", facts(node=CORDONED, slurm=slurm("DRAIN", reason=THEIRS)), Verb.NOTHING),
    ("not cordoned, drained by us", facts(slurm=slurm("DRAIN", reason=OURS)), Verb.UNDRAIN),
    ("not cordoned, drained by others", facts(slurm=slurm("DRAIN", reason=THEIRS)), Verb.NOTHING),
    ("static, drained by us", facts(**UNLABELLED, slurm=slurm("DRAIN", reason=OURS)), Verb.UNDRAIN),
    ("static, its Node is gone", facts(**GONE, record=None, slurm=slurm("DRAIN", reason=OURS)), Verb.NOTHING),
    ("our reason is left over", facts(slurm=slurm(reason=OURS)), Verb.CLEAR),
    ("other features", facts(asked=OTHER_FEATURES), Verb.UPDATE),
    ("wrong, and there", facts(asked=WRONG), Verb.TELL),
    ("registered, and not ours", facts(record=None), Verb.TELL),
    ("as it is to be", facts(), Verb.NOTHING),
)


@pytest.mark.parametrize(("seen", "verb"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_every_row_of_the_table(seen: NodePair, verb: Verb) -> None:
    """What is known of one node, and what is done."""
    assert decide(seen, REASONS).verb is verb


STATES = st.builds(
    slurm,
    st.sampled_from(["DRAIN", "DOWN", "FAIL", "PLANNED", "RESERVED", "???"]),
    used=st.booleans(),
    reason=st.sampled_from(["", OURS, THEIRS, "slurm-bridge(k2): x"]),
)
ANY = st.builds(
    facts,
    node=st.sampled_from([None, NODE, CORDONED]),
    bridged=st.booleans(),
    draining=st.booleans(),
    registering=st.booleans(),
    asked=st.sampled_from([None, DESIRED, OTHER_SHAPE, OTHER_FEATURES, WRONG, EARLY]),
    slurm=st.none() | STATES,
    record=st.sampled_from([None, RECORD]),
    foreign=st.booleans(),
    former=st.sampled_from(["", "n0"]),
)


@given(ANY)
def test_no_row_touches_what_is_not_ours(seen: NodePair) -> None:
    """Only recorded nodes are deleted, only when idle; only our drains end; no reason of others is overwritten."""
    action: NodeAction = decide(seen, REASONS)
    if action.verb is Verb.DELETE:
        assert seen.record is not None
        assert seen.slurm is not None
        assert seen.slurm.vacant
    if action.verb in (Verb.UNDRAIN, Verb.CLEAR):
        assert seen.our_reason
    if action.verb is Verb.DRAIN:
        assert seen.slurm is not None
        assert not seen.slurm.out_of_service
        assert REASONS.ours(action.words)
    if action.verb is Verb.CREATE:
        assert seen.slurm is None
