"""A real Prometheus on loopback, as Debian packages it, and promtool."""

import contextlib
import json
import pathlib
import shutil
import signal
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from localcluster import packages
from tests import wait

RULES = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "monitoring" / "prometheus-rules.yaml"

_SECONDS = 30.0


def program(name: str) -> str:
    """Where a program of the package is; the package is installed when it is missing."""
    packages.require(packages.Tool(program=name, packages=("prometheus",)))
    return str(shutil.which(name))


def promtool(*words: str) -> "subprocess.CompletedProcess[str]":
    """Whatever it says."""
    command = [program("promtool"), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)


class Prometheus:
    """A running server."""

    def __init__(self, url: str) -> None:
        self._url = url

    def get(self, path: str, **values: str) -> Any:
        """What the API answers."""
        asked = f"{self._url}/api/v1/{path}?{urllib.parse.urlencode(values)}"
        with urllib.request.urlopen(asked, timeout=wait.PATIENCE) as answer:  # noqa: S310 - loopback
            return json.load(answer)["data"]

    def values(self, expr: str) -> Mapping[str, float]:
        """The value of each series now, by its labels."""
        found = self.get("query", query=expr)["result"]
        return {json.dumps(one["metric"], sort_keys=True): float(one["value"][1]) for one in found}

    def up(self) -> bool:
        """Every target is scraped."""
        targets = self.get("targets")["activeTargets"]
        return bool(targets) and all(one["health"] == "up" for one in targets)


@contextlib.contextmanager
def running(folder: pathlib.Path, scrapes: Sequence[Mapping[str, Any]]) -> Iterator[Prometheus]:
    """A server that scrapes every second, with the rules of deploy/; stopped by its process id."""
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES)],
        "scrape_configs": list(scrapes),
    }
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    port = _free()
    command = [
        program("prometheus"),
        f"--config.file={folder / 'prometheus.yaml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    ]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        made = Prometheus(f"http://127.0.0.1:{port}")
        wait.until(lambda: process.poll() is not None or _answers(port), "answer of Prometheus", _SECONDS)
        assert process.poll() is None, (folder / "prometheus.log").read_text()
        yield made
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(_SECONDS)


def _free() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return int(asked.getsockname()[1])


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=1) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
