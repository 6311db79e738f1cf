"""`slurm-bridge run` and `slurm-bridge agent`: the processes that run until they are stopped."""

import argparse
import contextlib
import functools
from collections.abc import Callable

from slurm_bridge import app
from slurm_bridge.agents.service import AgentService
from slurm_bridge.cli import configured
from slurm_bridge.cli.configured import Commands
from slurm_bridge.daemon.process import Daemon
from slurm_bridge.runtime import garbage, threads
from slurm_bridge.telemetry import logs

#: A process while it is open.
Made = contextlib.AbstractContextManager[Daemon | AgentService]


def add(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add both commands."""
    for name, words, made in (
        ("run", "schedule pods through Slurm until stopped", app.daemon),
        ("agent", "answer which nodes of a shard suit a pod, until stopped", app.agent),
    ):
        configured.add(commands, name, words, functools.partial(_live, made))


def _live(made: Callable[[app.Configuration], Made], options: argparse.Namespace) -> int:
    """Run a process that stays: its garbage collection is seldom, its logs are by the configuration or the flags."""
    configuration = configured.configuration(options)
    garbage.collect_seldom()
    log = configuration.load().log
    logs.configure(verbosity=max(options.verbosity, log.verbosity), as_json=options.log_json or log.as_json)
    with made(configuration) as process:
        threads.install_signals(process.supervisor.stop)
        return process.run()
