"""`slurm-bridge check` and `slurm-bridge check-config`."""

import argparse
import sys

from slurm_bridge import app
from slurm_bridge.checks import findings
from slurm_bridge.cli import configured
from slurm_bridge.cli.configured import Commands
from slurm_bridge.runtime import progress
from slurm_bridge.settings import shown


def add(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add both commands."""
    configured.add(commands, "check", "check what scheduling through Slurm requires of both servers", _check)
    configured.add(commands, "check-config", "print the effective configuration, or every error in it", _effective)


def _check(options: argparse.Namespace) -> int:
    settings = configured.configuration(options).load()
    with progress.bar("checking", sys.stderr) as bar:
        found = app.check(settings, bar.step)
    print(findings.render(found))
    return findings.status(found)


def _effective(options: argparse.Namespace) -> int:
    settings = configured.configuration(options).load_with_hooks()
    app.try_out(settings)
    print(shown.effective(settings), end="")
    return 0
