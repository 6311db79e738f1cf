"""`slurm-bridge run` and `slurm-bridge agent`: the processes that run until they are stopped."""

import argparse
import contextlib
from collections.abc import Callable

from slurm_bridge import app
from slurm_bridge.agents.service import AgentService
from slurm_bridge.cli import configured
from slurm_bridge.cli.configured import Commands
from slurm_bridge.daemon.process import Daemon
from slurm_bridge.daemon.webhook import WebhookService
from slurm_bridge.runtime import garbage, threads
from slurm_bridge.settings.model import Settings
from slurm_bridge.telemetry import logs

#: A process while it is open.
Made = contextlib.AbstractContextManager[Daemon | AgentService | WebhookService]

#: The parts of the daemon that may run alone.
WEBHOOK = "webhook"


def add(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add both commands."""
    run = configured.add(commands, "run", "schedule pods through Slurm until stopped", _run)
    run.add_argument(
        "--only", choices=(WEBHOOK,), help="serve the admission webhook only: no scheduling, and no calls to Slurm"
    )
    words = "answer which nodes of a shard suit a pod, until stopped"
    configured.add(commands, "agent", words, _agent)


def _run(options: argparse.Namespace) -> int:
    configuration = configured.configuration(options)
    made = app.webhook if options.only == WEBHOOK else app.daemon
    return _live(made, configuration, configuration.load_with_hooks(), options)


def _agent(options: argparse.Namespace) -> int:
    configuration = configured.configuration(options)
    return _live(app.agent, configuration, configuration.load(), options)


def _live(
    made: Callable[[app.Configuration], Made],
    configuration: app.Configuration,
    settings: Settings,
    options: argparse.Namespace,
) -> int:
    """Run a process that stays: its garbage collection is seldom, its logs are by the configuration or the flags."""
    garbage.collect_seldom()
    log = settings.log
    logs.configure(verbosity=max(options.verbosity, log.verbosity), as_json=options.log_json or log.as_json)
    with made(configuration) as process:
        threads.install_signals(process.supervisor.stop)
        return process.run()
