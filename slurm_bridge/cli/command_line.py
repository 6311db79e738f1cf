"""The entry point: parses the arguments and calls the function of the command, which returns the exit status."""

import argparse
import sys
from collections.abc import Sequence

import slurm_bridge
from slurm_bridge import errors
from slurm_bridge.cli import check, demo, explain, policies, queues, run, takeover
from slurm_bridge.telemetry import logs


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. An expected error is printed as one line, and the exit status is 1."""
    parser = argparse.ArgumentParser(prog="slurm-bridge", description=slurm_bridge.__doc__)
    parser.add_argument("--version", action="version", version=f"slurm-bridge {slurm_bridge.__version__}")
    parser.add_argument("--verbosity", type=int, default=0, metavar="N", help="4 debug, 7 trace (default: %(default)s)")
    parser.add_argument("--log-json", action="store_true", help="write log lines as JSON")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    commands.add_parser("version", help="print the version").set_defaults(run=_version)
    for module in (run, check, policies, explain, queues, takeover, demo):
        module.add(commands)
    options = parser.parse_args(arguments)
    logs.configure(verbosity=options.verbosity, as_json=options.log_json)
    try:
        status: int = options.run(options)
    except errors.BridgeError as error:
        print(f"slurm-bridge: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return status


def _version(_: argparse.Namespace) -> int:
    print(f"slurm-bridge {slurm_bridge.__version__}")
    return 0
