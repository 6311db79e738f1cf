"""The entry points: each parses the arguments and calls the function of the command, which returns the exit status."""

import argparse
import os
import sys
from collections.abc import Sequence
from types import ModuleType

import slurm_bridge
from slurm_bridge import errors
from slurm_bridge.cli import (
    check,
    completion,
    completion_words,
    demo,
    explain,
    pods,
    policies,
    queues,
    run,
    takeover,
    top,
)
from slurm_bridge.telemetry import logs

#: What adds commands, in the order in which they are listed.
COMMANDS: tuple[ModuleType, ...] = (run, check, policies, explain, top, queues, takeover, demo, completion)

#: Of these, the ones that are for users of kubectl, too; `pods` is for these alone.
_OF_USERS = ("explain", "top", "queues")

_DESCRIPTION = "What Slurm and slurm-bridge do with your pods. Cluster and namespace are those of kubectl."


def parser() -> argparse.ArgumentParser:
    """The arguments of `slurm-bridge`."""
    made, commands = _begun("slurm-bridge", slurm_bridge.__doc__ or "")
    for module in COMMANDS:
        module.add(commands)
    # For the command that prints what completes all of them.
    made.set_defaults(whole=made)
    return made


def plugin_parser() -> argparse.ArgumentParser:
    """The arguments of `kubectl slurm`."""
    made, commands = _begun("kubectl slurm", _DESCRIPTION)
    for module in (pods, *(one for one in COMMANDS if one.__name__.rpartition(".")[2] in _OF_USERS)):
        module.add(commands)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """`slurm-bridge`: run one command."""
    return _run(parser(), arguments)


def plugin(arguments: Sequence[str] | None = None) -> int:
    """`kubectl slurm`, which kubectl finds as kubectl-slurm: likewise, with the commands for users."""
    return _run(plugin_parser(), arguments)


def complete_plugin(arguments: Sequence[str] | None = None) -> int:
    """What kubectl asks for completion of `kubectl slurm`: the words before the cursor, the last one incomplete."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    print("\n".join(completion_words.answer(plugin_parser(), words)))
    return 0


def _begun(
    name: str, description: str
) -> tuple[argparse.ArgumentParser, "argparse._SubParsersAction[argparse.ArgumentParser]"]:
    made = argparse.ArgumentParser(prog=name, description=description)
    made.add_argument("--version", action="version", version=f"slurm-bridge {slurm_bridge.__version__}")
    made.add_argument("--verbosity", type=int, default=0, metavar="N", help="4 debug, 7 trace (default: %(default)s)")
    made.add_argument("--log-json", action="store_true", help="write log lines as JSON")
    commands = made.add_subparsers(required=True, metavar="COMMAND")
    commands.add_parser("version", help="print the version").set_defaults(run=_version)
    return made, commands


def _run(made: argparse.ArgumentParser, arguments: Sequence[str] | None) -> int:
    """An expected error is printed as one line, and the exit status is 1."""
    options = made.parse_args(arguments)
    logs.configure(verbosity=options.verbosity, as_json=options.log_json)
    try:
        status: int = options.run(options)
        sys.stdout.flush()
    except errors.BridgeError as error:
        print(f"{made.prog}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader has enough, as behind `| head`. Python writes what is left once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return status


def _version(_: argparse.Namespace) -> int:
    print(f"slurm-bridge {slurm_bridge.__version__}")
    return 0
