"""CPU seconds and memory of processes, from /proc."""

import os
import pathlib
from collections.abc import Mapping

_TICKS = os.sysconf("SC_CLK_TCK")
_USER, _SYSTEM = 11, 12  # fields 14 and 15 of /proc/PID/stat, counted after the parenthesised name
_KIB = 1024


def cpu_of_stat(text: str) -> float:
    """User and system seconds in one line of /proc/PID/stat; the name in it may hold anything, also parentheses."""
    fields = text.rpartition(")")[2].split()
    return (int(fields[_USER]) + int(fields[_SYSTEM])) / _TICKS


def cpu(pid: int) -> float:
    """Seconds that the process has used so far, all threads together."""
    return cpu_of_stat(pathlib.Path(f"/proc/{pid}/stat").read_text())


def memory_of_status(text: str) -> dict[str, float]:
    """Resident MiB now and at most, of /proc/PID/status."""
    lines = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return {name: int(lines[key].split()[0]) / _KIB for name, key in (("now", "VmRSS"), ("most", "VmHWM"))}


def memory(pid: int) -> dict[str, float]:
    """Resident MiB now and at most."""
    return memory_of_status(pathlib.Path(f"/proc/{pid}/status").read_text())


def busy_of_stat(text: str) -> float:
    """Seconds in which any processor did anything, of /proc/stat; waiting for a disk is not doing."""
    ticks = [int(word) for word in text.partition("\n")[0].split()[1:]]
    idle, waiting = ticks[3], ticks[4]
    return (sum(ticks[:8]) - idle - waiting) / _TICKS


def busy() -> float:
    """Seconds in which any processor of this machine did anything."""
    return busy_of_stat(pathlib.Path("/proc/stat").read_text())


class Meter:
    """CPU seconds of several processes since the meter was made."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._pids = dict(pids)
        self._begin = {name: cpu(pid) for name, pid in self._pids.items()}

    def read(self) -> dict[str, float]:
        """Seconds by name. A process that has ended is an error: what it used is lost."""
        return {name: cpu(pid) - self._begin[name] for name, pid in self._pids.items()}
