"""What the accounting database holds from the start: accounts, two QOS (one preempts the other) and a limited user."""

import dataclasses
from collections.abc import Callable


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing that sacctmgr adds."""

    kind: str
    name: str
    options: tuple[str, ...] = ()


#: The order matters: users need accounts and QOS. A QOS named here is added to the built-in `normal`.
ENTRIES = (
    Entry(kind="cluster", name="local"),
    Entry(kind="qos", name="low", options=("Priority=0",)),
    Entry(kind="qos", name="high", options=("Priority=1000", "Preempt=low", "PreemptMode=cancel")),
    Entry(kind="account", name="schedmd", options=("Description=placeholders", "QOS=normal,low,high")),
    Entry(kind="account", name="research", options=("Description=people", "QOS=normal,low,high")),
    Entry(kind="user", name="slurm-bridge", options=("Account=schedmd,research", "DefaultAccount=schedmd")),
    Entry(kind="user", name="alice", options=("Account=research", "DefaultAccount=research")),
    Entry(kind="user", name="bob", options=("Account=schedmd", "MaxJobs=1", "MaxSubmitJobs=2")),
)


def fill(execute: Callable[..., str]) -> None:
    """Add what is missing; a fill that was killed half way goes on where it was."""
    known = {kind: _names(execute, kind) for kind in dict.fromkeys(entry.kind for entry in ENTRIES)}
    for entry in ENTRIES:
        if entry.name not in known[entry.kind]:
            execute("sacctmgr", "--immediate", "add", entry.kind, entry.name, *entry.options)


def _names(execute: Callable[..., str], kind: str) -> set[str]:
    column = {"cluster": "Cluster", "qos": "Name", "account": "Account", "user": "User"}[kind]
    return set(execute("sacctmgr", "--noheader", "--parsable2", "show", kind, f"format={column}").split())
