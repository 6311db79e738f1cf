"""What the commands that read the configuration have in common: `--config`, `--set`, and where settings come from."""

import argparse
import os
import pathlib
from collections.abc import Callable

from slurm_bridge import app

#: What `add_parser` belongs to: argparse has no public name for it.
Commands = argparse._SubParsersAction  # noqa: SLF001


def add(
    commands: "Commands[argparse.ArgumentParser]",
    name: str,
    words: str,
    run: Callable[[argparse.Namespace], int],
    *,
    required: bool = True,
) -> argparse.ArgumentParser:
    """Add a command that reads the configuration."""
    parser = commands.add_parser(name, help=words)
    parser.add_argument(
        "--config", type=pathlib.Path, required=required, metavar="FILE", help="the configuration, one YAML file"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="overrides",
        help="one key of the configuration; overrides the file and the environment; repeatable",
    )
    parser.set_defaults(run=run)
    return parser


def configuration(options: argparse.Namespace) -> app.Configuration:
    """The file, the environment and the overrides of this command line."""
    return app.Configuration(path=options.config, environ=os.environ, overrides=options.overrides)
