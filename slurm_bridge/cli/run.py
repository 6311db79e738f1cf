"""`slurm-bridge run` and `slurm-bridge agent`: the processes that run until they are stopped."""

import argparse

from slurm_bridge import app
from slurm_bridge.cli import configured
from slurm_bridge.cli.configured import Commands
from slurm_bridge.runtime import garbage, threads
from slurm_bridge.telemetry import logs


def add(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add both commands."""
    configured.add(commands, "run", "schedule pods through Slurm until stopped", _run)
    configured.add(commands, "agent", "answer which nodes of a shard suit a pod, until stopped", _agent)


def _run(options: argparse.Namespace) -> int:
    configuration = configured.configuration(options)
    _prepare(options, configuration)
    with app.daemon(configuration) as daemon:
        threads.install_signals(daemon.supervisor.stop)
        return daemon.run()


def _agent(options: argparse.Namespace) -> int:
    configuration = configured.configuration(options)
    _prepare(options, configuration)
    with app.agent(configuration) as agent:
        threads.install_signals(agent.supervisor.stop)
        return agent.run()


def _prepare(options: argparse.Namespace, configuration: app.Configuration) -> None:
    """Set up a process that stays: its garbage collection, and its logs by the configuration or the flags."""
    garbage.collect_seldom()
    log = configuration.load().log
    logs.configure(verbosity=max(options.verbosity, log.verbosity), as_json=options.log_json or log.as_json)
