"""`slurm-bridge admission-policies`."""

import argparse

from slurm_bridge import app
from slurm_bridge.cli import configured
from slurm_bridge.cli.configured import Commands


def add(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add the command."""
    words = "print the rules of admission as policies for kubectl apply, which need no webhook"
    configured.add(commands, "admission-policies", words, _print)


def _print(options: argparse.Namespace) -> int:
    print(app.admission_policies(configured.configuration(options).load_with_hooks()), end="")
    return 0
