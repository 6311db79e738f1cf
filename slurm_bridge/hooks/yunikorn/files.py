"""Configurations of queues in files; the only place of the family that reads any."""

import pathlib

import yaml

from slurm_bridge.errors import BadConfiguration


def read(name: str) -> object:
    """The mapping that the file holds; BadConfiguration names the file and what is wrong with it."""
    try:
        return yaml.safe_load(pathlib.Path(name).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BadConfiguration(f"file {name}: {error}") from error
