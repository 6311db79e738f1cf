"""POST reservation and DELETE reservation/{name}: nodes are reserved for some users, longer, or no more.

POST              the name is new                                      the name exists
----------------  ---------------------------------------------------  -------------------------------------------
with a start      created; 2058 if another one has one of the nodes    2104 if it has begun, nothing is changed
without           2053, a start is missing                             nodes and end are set

DELETE of a reservation that a pending or running job names is refused (2055).
"""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from slurm_bridge.model import hostlist
from slurm_bridge.sim.slurm import replies, state
from slurm_bridge.sim.slurm.call import SlurmCall
from slurm_bridge.sim.slurm.world import World

_WORD = re.compile(r"now(?:\+(\d+))?")
_NO_START = replies.Error(2053, "A start time must be given.  No reservation created.", "validate_resv_create_desc")


def put(call: SlurmCall) -> replies.SlurmReply:
    """Create or change a reservation."""
    name = str(call.fields.get("name", ""))
    there = call.world.reservations.get(name)
    if there is None and "start_time" not in call.fields:
        return replies.SlurmReply(errors=[_NO_START])
    number = _refused(call, name, there)
    if number:
        verb, source = ("creating", "slurm_create_reservation") if there is None else ("updating", _UPDATE)
        gap = "  " if there is None else " "
        return replies.refusal(number, f"Error {verb} reservation{gap}{name}", source)
    kept = there or state.Reservation(name=name, nodes=(), start=call.world.now)
    call.world.reserve(dataclasses.replace(kept, **_said(call.world, call.fields)))
    return replies.SlurmReply()


_UPDATE = "slurm_update_reservation"


def delete(call: SlurmCall) -> replies.SlurmReply:
    """DELETE reservation/{name}."""
    name, world = call.params["reservation_name"], call.world
    number = 0
    if not call.operator:
        number = 2010
    elif name not in world.reservations:
        number = 2053
    elif any(job.ask.reservation == name and not job.over for job in world.jobs.values()):
        number = 2055
    if number:
        return replies.refusal(number, f"Error deleting reservation {name}", "slurm_delete_reservation")
    world.unreserve(name)
    return replies.SlurmReply()


def _refused(call: SlurmCall, name: str, there: state.Reservation | None) -> int:
    world, body = call.world, call.fields
    if not call.operator:
        return 2010
    if there is not None and "start_time" in body and there.start <= world.now:
        return 2104
    try:
        nodes = _nodes(body)
    except ValueError:
        return 2018
    if any(node not in world.nodes for node in nodes):
        return 2018
    if any(user not in world.config.users for user in body.get("users", ())):
        return -1
    others = (one for one in world.reservations.values() if one.name != name)
    return 2058 if any(not set(nodes).isdisjoint(one.nodes) for one in others) else 0


def _nodes(body: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(node for text in body.get("node_list", ()) for node in hostlist.expand(text))


def _said(world: World, body: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {key: tuple(body[key]) for key in ("users", "accounts", "flags") if key in body}
    if "node_list" in body:
        found["nodes"] = _nodes(body)
    found |= {ours: _time(world, body[key]) for ours, key in _TIMES.items() if key in body}
    return found


_TIMES = {"start": "start_time", "end": "end_time"}


def _time(world: World, value: Any) -> float:
    """A number as slurmrestd has them, or a word: `now`, `now+60`."""
    if isinstance(value, Mapping):
        return float(value["number"])
    word = _WORD.fullmatch(str(value))
    return world.now + int(word[1] or 0) if word is not None else float(value)
