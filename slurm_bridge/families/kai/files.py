"""Copies of Slurm's topology in files; the only place of the family that reads any."""

import pathlib

from slurm_bridge.families.kai import copies
from slurm_bridge.families.kai.copies import BadCopy, Copy
from slurm_bridge.families.kai.options import TopologyOptions
from slurm_bridge.runtime import safe_yaml

_YAML = (".yaml", ".yml")


def copy_of(options: TopologyOptions) -> Copy | None:
    """What is given of Slurm's configuration, be it in a file; raises BadCopy naming topology and file."""
    if not options.file:
        return options.copy_of()
    path = pathlib.Path(options.file)
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix in _YAML:
            return copies.of_yaml(safe_yaml.load(text), options.called)
        return copies.of_conf(text)
    except (OSError, UnicodeDecodeError, safe_yaml.NotYaml, BadCopy) as error:
        raise BadCopy(f"topology {options.name}: file {options.file}: {error}") from error
