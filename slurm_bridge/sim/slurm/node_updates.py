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
    """Names before the first unknown one are changed, those after it are not."""
    listed = ",".join([entries] if isinstance(entries, str) else entries)
    refused = f"Failure to update node {listed}"
    if not call.operator:
        return replies.refusal(2010, refused, "_update_node")
    try:
        names = fields.hosts([listed])
    except ValueError:
        names = ()
    number = 0 if names else 2018
    for name in names:
        error = _updated(call, name)
        number = number or error
        if name not in call.world.nodes:
            break
    return replies.refusal(number, refused, "_update_node") if number else replies.SlurmReply()


def _updated(call: SlurmCall, name: str) -> int:
    """Changes one node; the number of the error, or 0."""
    node, given = call.world.nodes.get(name), call.fields
    if node is None:
        return 2018
    features, active = given.get("features") or node.features, given.get("features_act") or node.features
    if not set(active) <= set(features):
        return 2031
    if not call.world.knows_topologies(given.get("topology_str") or ""):
        return 2178
    change(call.world, name, given.get("state", []), given.get("reason"), call.caller)
    node = dataclasses.replace(
        call.world.nodes[name],
        features=tuple(features),
        comment=given.get("comment", node.comment),
        topology=given.get("topology_str", node.topology),
    )
    call.world.put_node(node)
    return 0


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
    """DELETE node/{list}: idle nodes are deleted even if another one has jobs or is unknown."""
    listed = call.params["node_name"]
    refused = f"Failure to delete node {listed}"
    if not call.operator:
        return replies.refusal(2010, refused, "op_handler_node")
    try:
        names = fields.hosts([listed])
    except ValueError:
        names = ()
    errors = [_deleted(call.world, name) for name in names]
    number = next(filter(None, errors), 0) if names else 2018
    return replies.refusal(number, refused, "op_handler_node") if number else replies.SlurmReply()


def _deleted(world: World, name: str) -> int:
    if name not in world.nodes:
        return 2018
    if world.jobs_on(name):
        return 2016
    world.remove_node(name)
    return 0


_CONFIGURATION = re.compile(r'(\w+)=(?:"([^"]*)"|(\S+))')


def create(call: SlurmCall) -> replies.SlurmReply:
    """POST new/node: a line of slurm.conf; a hostlist creates several."""
    refused = "Failure to create node"
    if not call.operator:
        return replies.refusal(2010, refused, "_create_node")
    found = _CONFIGURATION.findall(call.fields.get("node_conf", ""))
    options = {name.lower(): quoted or plain for name, quoted, plain in found}
    if not options.keys() <= _OPTIONS:
        return replies.refusal(-1, refused, "_create_node")
    try:
        nodes = _configured(options, call.world.now)
    except ValueError:
        return replies.refusal(2018, refused, "_create_node")
    number = _unacceptable(call.world, nodes, options)
    if number:
        return replies.refusal(number, refused, "_create_node")
    for node in nodes:
        call.world.put_node(node)
        call.world.join_partitions(node)
    return replies.SlurmReply()


#: What slurm.conf knows of a node, as far as anything is done with it here.
_OPTIONS = frozenset(
    "nodename nodeaddr cpus sockets corespersocket threadspercore realmemory gres gresconf feature features state"
    " reason topology".split()
)


def _unacceptable(world: World, nodes: Sequence[state.Node], options: Mapping[str, str]) -> int:
    """The number of the error, or 0. Nodes with GRES are added one by one, with their devices."""
    if any(node.name in world.nodes for node in nodes):
        return 2168
    if len(world.nodes) + len(nodes) > world.config.maximum_nodes:
        return 2169
    if not world.knows_topologies(options.get("topology", "")):
        return 2178
    addresses = hostlist.expand(options.get("nodeaddr", ""))
    if len(addresses) not in (0, 1, len(nodes)):
        return 5005  # the real one dies of it
    known = {pool.name for pool in nodes[0].gres} & world.known_gres
    return 22 if known and ("gresconf" not in options or len(nodes) > 1) else 0


def _configured(options: Mapping[str, str], now: float) -> list[state.Node]:
    names = hostlist.expand(options.get("nodename", ""))
    if not names:
        raise ValueError("no name")
    gres = options.get("gres")
    features = options.get("feature", options.get("features", ""))
    return [
        state.Node(
            name=name,
            cpus=int(options.get("cpus", "1")),
            threads_per_core=int(options.get("threadspercore", "1")),
            memory_mib=int(options.get("realmemory", "1")),
            gres=tres.parse_gres(",".join(f"gres/{part}" for part in gres.split(","))) if gres else (),
            features=tuple(filter(None, features.split(","))),
            external=options.get("state") == "EXTERNAL",
            dynamic=True,
            reason=options.get("reason", ""),
            topology=options.get("topology", ""),
            created=now,
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
