"""`slurm-bridge takeover`: from SchedMD's bridge to this one, and back."""

import argparse
import pathlib
import sys

from slurm_bridge import app, errors
from slurm_bridge.cli import configured
from slurm_bridge.cli.configured import Commands
from slurm_bridge.runtime import progress
from slurm_bridge.takeover import helm


def add(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add the command."""
    words = "take over the jobs and pods of SchedMD's slurm-bridge, or hand them back"
    parser = configured.add(commands, "takeover", words, _takeover, required=False)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--dry-run", action="store_true", help="print what would be done")
    what.add_argument("--apply", action="store_true", help="do it; may be repeated after an interruption")
    what.add_argument(
        "--values", metavar="FILE", help="print the configuration that follows from Helm values (- for standard input)"
    )
    parser.add_argument("--back", action="store_true", help="hand over to SchedMD's bridge instead")
    parser.add_argument("--list", action="store_true", dest="every", help="print every step")
    parser.add_argument("--force", action="store_true", help="do not look for bridges that act now")
    parser.add_argument(
        "--cluster-id", default="slurm-bridge", metavar="NAME", help="with --values: cluster_id (default: %(default)s)"
    )


def _takeover(options: argparse.Namespace) -> int:
    """Status 0: nothing is left to do, 3: objects were left alone, 1: refused or failed."""
    if options.values is not None:
        return _values(options)
    if options.config is None:
        raise errors.BadConfiguration("takeover needs --config FILE")
    settings = configured.configuration(options).load()
    chosen = app.TakeoverOptions(back=options.back, apply=options.apply, every=options.every, force=options.force)
    with progress.bar("handing over", sys.stderr) as bar:
        return app.takeover(settings, chosen, bar.line, bar.step)


def _values(options: argparse.Namespace) -> int:
    """Warnings are comments of the file, and go to standard error as well."""
    try:
        given = sys.stdin.read() if options.values == "-" else pathlib.Path(options.values).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise errors.BadConfiguration(f"{options.values} cannot be read: {type(error).__name__}") from None
    made = helm.translate(given, options.cluster_id)
    print(made.text, end="")
    for warning in made.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    return 0
