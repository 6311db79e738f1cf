"""Orders about nodes: changed, added and deleted, many in one call.

    POST nodes/          names before the first unknown one are changed, those after it are not (2018)
    DELETE node/{list}   the idle ones are deleted even where another one has jobs (2016)
    POST new/node        a line of slurm.conf. Fewer addresses than names kill slurmctld 26.05; with GRES, a line for
                         several nodes is refused (22)

A node joins partitions when it is added, and when slurmctld reads its configuration again: a partition of all nodes,
and one of a NodeSet whose feature the node has. A changed feature does not move it.
"""

import dataclasses
import re
import urllib.parse
from collections.abc import Callable, Collection, Iterable
from typing import Final

from slurm_bridge.model import hostlist
from slurm_bridge.model.job import Done, Gres, Outcome, Refusal, Refused
from slurm_bridge.model.names import NO_JOB
from slurm_bridge.model.slurmnode import NewNodes, NodeChange, NodeShape
from slurm_bridge.runtime.http.messages import HttpAnswer, HttpRequest
from slurm_bridge.slurm import calls, outcomes, replies, shapes

#: What may stand unquoted in a line of slurm.conf, and what between quotes.
_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:,-]*")
_TEXT: Final = re.compile(r"[^\"\\\n\r#]*")
#: slurmctld takes these for many nodes.
_MANY: Final = frozenset({"all", "default"})

Ask = Callable[[HttpRequest, Callable[[HttpAnswer], Outcome]], Outcome]


def listing(seen: int | None) -> HttpRequest:
    """All nodes, or 304 where none has changed since that time."""
    return calls.NODES if seen is None else calls.read(f"/nodes/?update_time={seen}")


def change(ask: Ask, names: Collection[str], wanted: NodeChange) -> Outcome:
    """POST nodes/. Features that are left have to be taken out of use in the same call."""
    body: dict[str, object] = {"name": sorted(names)}
    if wanted.order is not None:
        body["state"] = [wanted.order.value]
    if wanted.features is not None:
        body |= {"features": list(wanted.features), "features_act": list(wanted.features)}
    given = (("reason", wanted.reason), ("comment", wanted.comment), ("topology_str", wanted.topology))
    body |= {field: value for field, value in given if value is not None}
    wrong = _not_names(names)
    if wrong or wanted.features == ():
        return _invalid(wrong or "Slurm does not take the last feature of a node away")
    return ask(calls.order("POST", "/nodes/", body), judged)


def delete(ask: Ask, names: Collection[str]) -> Outcome:
    """DELETE node/{list}."""
    wrong = _not_names(names)
    if wrong:
        return _invalid(wrong)
    listed = urllib.parse.quote(hostlist.compress(names), safe="")
    return ask(calls.order("DELETE", f"/node/{listed}"), judged)


def create(ask: Ask, nodes: NewNodes) -> Outcome:
    """POST new/node; nodes with GRES one by one, up to the first that is not added."""
    try:
        lines = [configuration(part) for part in _parts(nodes)]
    except ValueError as mistake:
        return _invalid(str(mistake))
    outcome: Outcome = _invalid("no node is named")
    for line in lines:
        outcome = ask(calls.order("POST", "/new/node", {"node_conf": line}), judged)
        if not isinstance(outcome, Done):
            break
    return outcome


def _parts(nodes: NewNodes) -> Iterable[NewNodes]:
    if not nodes.shape.gres:
        return (nodes,)
    return (dataclasses.replace(nodes, addresses={name: address}) for name, address in nodes.addresses.items())


def configuration(nodes: NewNodes) -> str:
    """The line of slurm.conf; ValueError where Slurm would read another one than is meant."""
    shape, features = nodes.shape, (*nodes.features, *nodes.shape.partitions)
    words = {
        "NodeName": ",".join(nodes.addresses),
        "NodeAddr": ",".join(nodes.addresses.values()),
        "Sockets": "1",
        "CoresPerSocket": str(shape.cores),
        "ThreadsPerCore": str(shape.threads_per_core),
        "CPUs": str(shape.cores * shape.threads_per_core),
        "RealMemory": str(shape.memory_mib),
        "Gres": _gres(shape.gres),
        "Feature": ",".join(dict.fromkeys(features)),
        "Topology": nodes.topology,
        "State": "EXTERNAL",
    }
    wrong = _not_names(nodes.addresses) or _not_words(words) or _not_addresses(nodes.addresses.values())
    if wrong or not _TEXT.fullmatch(nodes.reason):
        raise ValueError(wrong or f"the reason {nodes.reason!r} cannot be quoted")
    line = " ".join(f"{key}={word}" for key, word in words.items() if word)
    devices = f' GresConf="{_devices(shape)}"' if shape.gres else ""
    return f"{line}{devices}" + (f' Reason="{nodes.reason}"' if nodes.reason else "")


def judged(answer: HttpAnswer) -> Outcome:
    """An order about nodes has no result but errors."""
    said = replies.decode(answer, shapes.Envelope)
    if said is None or said.errors or not answer.ok:
        return outcomes.of_failure(answer)
    return Done(job_id=NO_JOB, warnings=replies.warnings(said))


def _gres(gres: Iterable[Gres]) -> str:
    return ",".join(":".join(part for part in (one.name, one.type, str(one.count)) if part) for one in gres)


def _devices(shape: NodeShape) -> str:
    """Each device has a file, which exists nowhere: without one, Slurm loses count of GPUs that have a type."""
    first: dict[str, int] = {}
    lines = []
    for one in shape.gres:
        low = first.get(one.name, 0)
        first[one.name] = high = low + one.count
        numbers = f"[{low}-{high - 1}]" if one.count > 1 else str(low)
        kind = f",Type={one.type}" if one.type else ""
        lines.append(f"Name={one.name}{kind},Count={one.count},File=/dev/{one.name}{numbers}")
    return "+".join(lines)


def _not_names(names: Collection[str]) -> str:
    odd = next((name for name in names if name.lower() in _MANY or "," in name or not _WORD.fullmatch(name)), None)
    return "" if names and odd is None else f"{odd or ''!r} is no name of a node"


def _not_addresses(addresses: Iterable[str]) -> str:
    odd = next((one for one in addresses if "," in one or not _WORD.fullmatch(one)), None)
    return "" if odd is None else f"{odd!r} is no address of a node"


def _not_words(words: dict[str, str]) -> str:
    odd = next((key for key, word in words.items() if word and not _WORD.fullmatch(word)), None)
    return "" if odd is None else f"{odd}={words[odd]!r} cannot be written in a line of slurm.conf"


def _invalid(why: str) -> Refused:
    return Refused(why=Refusal.INVALID, code=0, message=why)
