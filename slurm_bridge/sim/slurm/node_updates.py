"""Changes of nodes by an administrator over REST: drain, resume, down, create, delete."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

from slurm_bridge.model import hostlist
from slurm_bridge.sim.slurm import fields, replies, state, tres
from slurm_bridge.sim.slurm.call import SlurmCall
from slurm_bridge.sim.slurm.world import World


def update_one(call: SlurmCall) -> replies.SlurmReply:
    """POST node/{name}."""
    return _update(call, [call.params["node_name"]])


def update_many(call: SlurmCall) -> replies.SlurmReply:
    """POST nodes/."""
    return _update(call, call.fields.get("name", []))


def _update(call: SlurmCall, entries: Sequence[str] | str) -> replies.SlurmReply:
    listed = ",".join([entries] if isinstance(entries, str) else entries)
    refused = f"Failure to update node {listed}"
    if not call.operator:
        return replies.refusal(2010, refused, "_update_node")
    try:
        names = fields.hosts([listed])
    except ValueError:
        names = ()
    if not names or any(name not in call.world.nodes for name in names):
        return replies.refusal(2018, refused, "_update_node")
    for name in names:
        change(call.world, name, call.fields.get("state", []), call.fields.get("reason"), call.caller)
    return replies.SlurmReply()


def change(world: World, name: str, words: Sequence[str], reason: str | None = None, by: str = "root") -> None:
    """Set the states of one node; if it goes down, its jobs end."""
    node = world.nodes[name]
    for word in [words] if isinstance(words, str) else words:
        node = dataclasses.replace(node, **_STATES.get(word, {}))
    if reason is not None:
        node = dataclasses.replace(node, reason=reason, reason_by=by, reason_at=world.now)
    world.put_node(node)
    if node.down:
        fail_jobs(world, name)


_NO_REASON = {"reason": "", "reason_by": "", "reason_at": 0.0}

#: State in an update -> what it changes.
_STATES: Mapping[str, Mapping[str, Any]] = {
    "DRAIN": {"drain": True},
    "DOWN": {"down": True},
    "FAIL": {"drain": True},
    "RESUME": {"drain": False, "down": False, **_NO_REASON},
    "UNDRAIN": {"drain": False, **_NO_REASON},
    "IDLE": {"drain": False, "down": False, **_NO_REASON},
    "NO_RESPOND": {"responding": False},
}


def fail_jobs(world: World, name: str) -> None:
    """NODE_FAIL, except for jobs that asked to continue with the remaining nodes."""
    for job in world.jobs_on(name):
        assert job.grant is not None
        others = [share for share in job.grant.shares if share.node != name]
        if job.ask.kill_on_node_fail or not others:
            world.end(job, "NODE_FAIL", reason="NodeDown", failed_node=name)
        else:
            shares = (*others, *(share for share in job.grant.shares if share.node == name))
            ordered = dataclasses.replace(job.grant, shares=shares)
            world.shrink(dataclasses.replace(job, grant=ordered), keep=len(others))


def delete(call: SlurmCall) -> replies.SlurmReply:
    """DELETE node/{name}."""
    name = call.params["node_name"]
    refused = f"Failure to delete node {name}"
    if not call.operator:
        return replies.refusal(2010, refused, "op_handler_node")
    if name not in call.world.nodes:
        return replies.refusal(2018, refused, "op_handler_node")
    if call.world.jobs_on(name):
        return replies.refusal(2016, refused, "op_handler_node")
    call.world.remove_node(name)
    return replies.SlurmReply()


_CONFIGURATION = re.compile(r"(\w+)=(\S+)")


def create(call: SlurmCall) -> replies.SlurmReply:
    """POST new/node: a line of slurm.conf; a hostlist creates several."""
    refused = "Failure to create node"
    if not call.operator:
        return replies.refusal(2010, refused, "_create_node")
    options = {name.lower(): value for name, value in _CONFIGURATION.findall(call.fields.get("node_conf", ""))}
    try:
        nodes = _configured(options)
    except ValueError:
        return replies.refusal(2018, refused, "_create_node")
    if any(node.name in call.world.nodes for node in nodes):
        return replies.refusal(2168, refused, "_create_node")
    if len(call.world.nodes) + len(nodes) > call.world.config.maximum_nodes:
        return replies.refusal(2169, refused, "_create_node")
    for node in nodes:
        call.world.put_node(node)
    return replies.SlurmReply()


def _configured(options: dict[str, str]) -> list[state.Node]:
    names = hostlist.expand(options.get("nodename", ""))
    if not names:
        raise ValueError("no name")
    gres = options.get("gres")
    return [
        state.Node(
            name=name,
            cpus=int(options.get("cpus", "1")),
            threads_per_core=int(options.get("threadspercore", "1")),
            memory_mib=int(options.get("realmemory", "1")),
            gres=tres.parse_gres(",".join(f"gres/{part}" for part in gres.split(","))) if gres else (),
            features=tuple(options.get("feature", options.get("features", "")).split(",")),
            external=options.get("state") == "EXTERNAL",
            dynamic=True,
        )
        for name in names
    ]


def reconfigure(call: SlurmCall) -> replies.SlurmReply:
    """GET reconfigure/."""
    if not call.operator:
        return replies.refusal(2010, "slurm_reconfigure() failed", "op_handler_reconfigure")
    read_again(call.world)
    return replies.SlurmReply()


def read_again(world: World) -> None:
    """Nodes answer again and lost GPUs are found; a waiting job whose candidates include a deleted node fails."""
    world.read_configuration()
    for node in list(world.nodes.values()):
        if not node.responding:
            world.put_node(dataclasses.replace(node, responding=True))
    world.recount()
    for job in [world.jobs[job_id] for job_id in world.pending]:
        if any(name not in world.nodes for name in job.ask.required):
            world.end(job, "NODE_FAIL", reason="NodeDown")
