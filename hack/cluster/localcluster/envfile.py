"""The file of variables that tells programs and tests where the running cluster is."""

import os
import pathlib
import shlex
from collections.abc import Mapping

from localcluster import config


def write(directory: pathlib.Path, variables: Mapping[str, str]) -> None:
    """So that a shell may read the file as well."""
    text = "".join(f"{name}={shlex.quote(value)}\n" for name, value in variables.items())
    (directory / "env").write_text(text)


def read(directory: pathlib.Path | None = None) -> Mapping[str, str]:
    """Its variables; FileNotFoundError says how to get one."""
    folder = directory or pathlib.Path(os.environ.get("CLUSTER_DIR", config.PROJECT / ".cluster"))
    file = folder / "env"
    if not file.exists():
        raise FileNotFoundError(f"no local cluster: {file} is missing, start one with make cluster-up")
    return dict(_variable(line) for line in file.read_text().splitlines() if "=" in line and line[:1] != "#")


def _variable(line: str) -> tuple[str, str]:
    """Values may be quoted as a shell would read them."""
    name, _, value = line.removeprefix("export ").partition("=")
    return name.strip(), shlex.split(value)[0] if value[:1] in ("'", '"') else value.strip()
