"""The devices and cores that Slurm has given to a job on one node, as it writes them."""

import dataclasses
import re
from collections.abc import Iterable
from typing import Final

from slurm_bridge.model.job import Cores, Gres, NodeShare
from slurm_bridge.translate.device_claims import AskedDevices

#: `gpu:a100:2(IDX:0,3-5)`
_DEVICES: Final = re.compile(r"([^,()]+):([0-9]+)\(IDX:([0-9,-]+)\)")
_MOST_INDEX: Final = 4096


@dataclasses.dataclass(frozen=True, slots=True)
class JobDevices:
    """The indices that a job has on one node, by name and type, in lower case, and its cores; `text` is in words."""

    text: str
    rows: tuple[tuple[Gres, frozenset[int]], ...]
    cores: Cores | None = None

    def of(self, asked: AskedDevices) -> frozenset[int] | None:
        """Those that a request may use; None where Slurm gives none, or the devices have none."""
        wanted = asked.row.gres
        found = [
            numbers
            for gres, numbers in self.rows
            if gres.name == wanted.name.lower() and wanted.type.lower() in ("", gres.type)
        ]
        return frozenset[int]().union(*found) if found and asked.row.index else None


def given_by(share: NodeShare | None) -> JobDevices:
    """What a job has of one node."""
    if share is None:
        return indices("")
    devices = indices(share.devices)
    cores = f"cores {share.cores.bits:#x}" if share.cores is not None else ""
    return dataclasses.replace(devices, text=", ".join(filter(None, (devices.text, cores))), cores=share.cores)


def indices(text: str) -> JobDevices:
    """What `gpu:a100:2(IDX:0-1),nic:1(IDX:0)` says."""
    rows = []
    for head, count, numbers in _DEVICES.findall(text):
        name, _, kind = head.strip().lower().partition(":")
        rows.append((Gres(name=name, type=kind, count=int(count)), frozenset(_numbers(numbers))))
    return JobDevices(text, tuple(rows))


def _numbers(text: str) -> Iterable[int]:
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            yield from range(int(first), min(int(last or first), int(first) + _MOST_INDEX) + 1)
