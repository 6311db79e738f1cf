"""The action for one node.

The first row that applies decides. *Out* is a node that takes no jobs (drained, down, failing); *ours* is a reason of
this bridge, *record* a node that this bridge has added.

    Kubernetes                  Slurm                                       action
    several claim the name      added by us for a node that does not claim  as for a node that is gone, below
                                  it any more
    several claim the name      any other                                   TELL
    registered                  cannot be read                              WAIT
    registered                  -, and the request is wrong                 TELL
    registered                  -, its former node is still there           WAIT
    registered                  -                                           CREATE
    not registered              -                                           NOTHING
    any                         another bridge has added it                 TELL where it is registered, else NOTHING
    any                         added by us a moment ago, no record yet     ADOPT
    not registered, or gone     record, not out                             DRAIN (leaving)
    not registered, or gone     record, out, no jobs                        DELETE
    not registered, or gone     record, out, jobs                           WAIT
    other resources, or was     record, out for a reason that is not ours   WAIT
      added for another node
    likewise                    record, not out                             DRAIN (changing)
    likewise                    record, drained for our reason, no jobs     DELETE; CREATE follows
    likewise                    record, drained for our reason, jobs        WAIT
    bridged, cordoned           not out                                     DRAIN (cordoned)
    cordoned                    any other                                   NOTHING, or the last rows
    not cordoned                drained for our reason                      UNDRAIN
    not cordoned                not out, our reason is left over            CLEAR
    other features, topology    record                                      UPDATE
    the request is wrong        record                                      TELL
    registered                  no record                                   TELL
    any                         any                                         NOTHING

So a node that this bridge has not added is never deleted, and a drain that is not ours is never ended, by nothing
here: neither is ended by adding the node anew.
"""

import dataclasses
import enum

from slurm_bridge.controllers.nodes.desired_nodes import Unregistrable
from slurm_bridge.controllers.nodes.facts import NodePair
from slurm_bridge.controllers.nodes.marks import DrainReasons
from slurm_bridge.model.slurmnode import SlurmNode


class Verb(enum.Enum):
    """What is done with a node."""

    NOTHING = "nothing"
    WAIT = "wait"
    TELL = "tell"
    CREATE = "create"
    ADOPT = "adopt"
    DRAIN = "drain"
    UNDRAIN = "undrain"
    CLEAR = "clear"
    UPDATE = "update"
    DELETE = "delete"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeAction:
    """`words` are the reason of a drain, or what the Kubernetes node is told; `event` is the reason of that event."""

    verb: Verb
    words: str = ""
    event: str = ""


NOTHING = NodeAction(verb=Verb.NOTHING)
WAIT = NodeAction(verb=Verb.WAIT)


def decide(facts: NodePair, reasons: DrainReasons) -> NodeAction:
    """The table above, from top to bottom."""
    if facts.rivals and not facts.deserted:
        return _rivals(facts)
    if facts.slurm is None:
        return _absent(facts)
    if facts.foreign:
        return _tell_if_asked(facts, "another slurm-bridge has added the node of this name to Slurm")
    if facts.added:
        return NodeAction(verb=Verb.ADOPT)
    return _departure(facts, reasons) or _drains(facts, reasons) or _rest(facts)


def _departure(facts: NodePair, reasons: DrainReasons) -> NodeAction | None:
    if facts.record is None or facts.slurm is None or not facts.registering:
        return None
    if facts.asked is None:
        return _removal(facts.slurm, reasons.leaving)
    if not facts.changed:
        return None
    theirs = facts.slurm.out_of_service and not facts.our_reason
    return WAIT if theirs else _removal(facts.slurm, reasons.changing)


def _removal(slurm: SlurmNode, reason: str) -> NodeAction:
    if not slurm.out_of_service:
        return NodeAction(verb=Verb.DRAIN, words=reason)
    return NodeAction(verb=Verb.DELETE) if slurm.vacant else WAIT


def _rivals(facts: NodePair) -> NodeAction:
    listed = ", ".join(sorted(node.metadata.name for node in facts.rivals)[:4])
    words = (
        f"nodes {listed} have the same name {facts.name!r} in Slurm; nothing is done for them until one name is left"
    )
    return NodeAction(verb=Verb.TELL, event="SlurmNameTaken", words=words) if facts.bridged else NOTHING


def _absent(facts: NodePair) -> NodeAction:
    if facts.asked is None:
        return NOTHING
    if facts.unreadable or facts.former:
        return WAIT
    return _problem(facts.asked) if isinstance(facts.asked, Unregistrable) else NodeAction(verb=Verb.CREATE)


def _drains(facts: NodePair, reasons: DrainReasons) -> NodeAction | None:
    assert facts.slurm is not None
    if facts.node is None:
        return None
    if facts.cordoned and facts.draining:
        due = facts.bridged and not facts.slurm.out_of_service
        return NodeAction(verb=Verb.DRAIN, words=reasons.cordoned) if due else None
    if facts.our_reason and facts.slurm.draining:
        return NodeAction(verb=Verb.UNDRAIN)
    if facts.our_reason and not facts.slurm.out_of_service:
        return NodeAction(verb=Verb.CLEAR)
    return None


def _rest(facts: NodePair) -> NodeAction:
    if facts.outdated:
        return NodeAction(verb=Verb.UPDATE)
    if isinstance(facts.asked, Unregistrable):
        return _problem(facts.asked)
    if facts.record is None:
        return _tell_if_asked(
            facts, "the node of this name is in Slurm already; slurm-bridge did not add it and keeps it"
        )
    return NOTHING


def _problem(problem: Unregistrable) -> NodeAction:
    if problem.early:
        return WAIT
    return NodeAction(verb=Verb.TELL, event="NotRegistered", words=problem.message)


def _tell_if_asked(facts: NodePair, words: str) -> NodeAction:
    return NodeAction(verb=Verb.TELL, event="NotRegistered", words=words) if facts.asked is not None else NOTHING
