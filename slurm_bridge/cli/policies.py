"""`slurm-bridge admission-policies`."""

import argparse
from typing import Final

from slurm_bridge import app
from slurm_bridge.cli import configured
from slurm_bridge.cli.configured import Commands
from slurm_bridge.model import parts

#: The name of a policy ends with what it does.
_MOST_NAME: Final = 40


def add(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add the command."""
    words = "print the rules of admission as policies for kubectl apply, which need no webhook"
    parser = configured.add(commands, "admission-policies", words, _print)
    parser.add_argument(
        "--name",
        type=_name,
        default="slurm-bridge",
        metavar="NAME",
        help="the first part of the policies' names, of its own for each bridge of a cluster (default: %(default)s)",
    )


def _name(text: str) -> str:
    if not (parts.is_namespace(text) and len(text) <= _MOST_NAME):
        raise argparse.ArgumentTypeError(f"{text!r}: use at most {_MOST_NAME} small letters, digits and hyphens")
    return text


def _print(options: argparse.Namespace) -> int:
    print(app.admission_policies(configured.configuration(options).load_with_hooks(), options.name), end="")
    return 0
