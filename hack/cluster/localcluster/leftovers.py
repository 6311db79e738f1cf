"""What is left of a cluster after it was stopped: nothing, or `down` names it.

Looks at the machine and not at our records, because a record that was lost is how something gets left behind.
"""

import contextlib
import os
import pathlib
from collections.abc import Iterator

from localcluster import cgroups, engine, process, real_network, slurm_files
from localcluster.config import Config


def found(config: Config) -> list[str]:
    """One line for everything that still runs, is mounted, or is kept by an engine; the folder itself is not asked."""
    return [*_processes(config), *_mounts(config), *_of_real_nodes(config), *_kept(config)]


def _processes(config: Config) -> Iterator[str]:
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or process.identity(int(entry.name)) is None:
            continue
        with contextlib.suppress(OSError):  # it ended while we looked
            if _is_ours(entry, config):
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                yield f"process {entry.name}: {command[:120]}"


def _is_ours(entry: pathlib.Path, config: Config) -> bool:
    """Our servers and their children have a home in the folder; those in containers see mounts from it."""
    home = f"HOME={config.directory}/".encode()
    if any(variable.startswith(home) for variable in (entry / "environ").read_bytes().split(b"\0")):
        return True
    return not _shares_our_mounts(entry) and f" {config.directory}/" in (entry / "mountinfo").read_text()


def _shares_our_mounts(entry: pathlib.Path) -> bool:
    return (entry / "ns" / "mnt").readlink() == pathlib.Path("/proc/self/ns/mnt").readlink()


def _mounts(config: Config) -> Iterator[str]:
    for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
        point = line.split()[1].replace("\\040", " ")
        if f"{point}/".startswith(f"{config.directory}{os.sep}"):
            yield f"mount {point}"


def _of_real_nodes(config: Config) -> Iterator[str]:
    yield from (f"control group {folder}" for folder in cgroups.found(slurm_files.prefix(config)))
    if real_network.is_linked(config):
        yield f"network link {real_network.link(config)}"


def _kept(config: Config) -> Iterator[str]:
    """In an engine that goes on, because it is a neighbour's or the machine's."""
    if not engine.answers(config):
        return
    prefix = slurm_files.prefix(config)
    for kind, listing in (("container", ("ps", "--all")), ("volume", ("volume", "ls"))):
        shape = "{{.Names}}" if kind == "container" else "{{.Name}}"
        names = engine.docker(config, *listing, "--filter", f"name={prefix}", "--format", shape).split()
        yield from (f"{kind} {name}" for name in names)
