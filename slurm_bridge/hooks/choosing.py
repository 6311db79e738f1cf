"""What an attempt adds to a request, and by what nodes are preferred for it."""

import zlib

from slurm_bridge.cluster.room import Rooms
from slurm_bridge.hooks.attempts import Attempt
from slurm_bridge.hooks.base import Ask, Scores
from slurm_bridge.hooks.rating import Ranking
from slurm_bridge.hooks.session import Session
from slurm_bridge.model.job import JobRequest
from slurm_bridge.translate.translator import Translated, numbered


def single(request: JobRequest) -> bool:
    """One task, which takes one node though nobody says so."""
    return request.tasks == 1 and request.minimum_nodes is request.maximum_nodes is None and not request.components


def limited(settled: Translated, attempt: Attempt) -> Translated:
    """With the attempt's node maximum; of a single task all that there is to say is said."""
    if attempt.most is None:
        return settled
    numbers = {"maximum_nodes": (attempt.most, attempt.name or "as many as there are pods")}
    if single(settled.request):
        numbers["minimum_nodes"] = 1, "one node for one task"
    return numbered(settled, numbers)


def ranked(session: Session, ask: Ask, request: JobRequest, rated: Scores, rooms: Rooms) -> Ranking:
    """By these scores, among the nodes that have room now for the first of its pods."""
    workload = ask.workload
    # Who asks for a single tier wants the scores shown, and not followed.
    followed = (rated.tiers is None or rated.tiers.count > 1) and rated.nodes
    roomy = rooms.now(session.columns, workload.lead, request) if followed else None
    turn = zlib.crc32(workload.root.uid.encode())
    return Ranking(scores=rated, columns=session.columns, roomy=roomy, turn=turn)
