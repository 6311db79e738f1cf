"""The Helm chart and the kustomize files, rendered: what both say of a release."""

import json
import pathlib
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from localcluster import gomodules
from localcluster.config import PROJECT, Config
from tests.e2e.support_servers import Json

DEPLOY = PROJECT / "deploy"
CHART = DEPLOY / "helm" / "slurm-bridge"
KUBECTL = PROJECT / "hack" / "cluster" / "kubectl"
NAMESPACE = "slurm-bridge-system"
RELEASE = "slurm-bridge"

SECONDS = 60.0


class Helm:
    """The command, with folders of its own, and access to the local cluster."""

    def __init__(self, config: Config, folder: pathlib.Path) -> None:
        self._program = gomodules.tool(config, "helm")
        homes = {f"HELM_{kind}_HOME": str(folder / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
        self._environ = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
            "KUBECONFIG": str(config.directory / "kubeconfig"),
        }
        self._environ |= homes

    def run(self, *words: str, values: Mapping[str, Any] | None = None) -> "subprocess.CompletedProcess[str]":
        """Whatever it says."""
        command = [str(self._program), *words, *(["--values", "-"] if values is not None else [])]
        given = json.dumps(values or {})
        return subprocess.run(
            command, env=self._environ, input=given, capture_output=True, text=True, timeout=SECONDS, check=False
        )

    def said(self, *words: str, values: Mapping[str, Any] | None = None) -> str:
        """What it prints; it has to succeed."""
        done = self.run(*words, values=values)
        assert done.returncode == 0, f"helm {' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout

    def rendered(self, values: Mapping[str, Any], *, release: str = RELEASE, namespace: str = NAMESPACE) -> str:
        """The manifests of a release that is not installed."""
        return self.said("template", release, str(CHART), "--namespace", namespace, values=values)


def customized(folder: pathlib.Path, components: Sequence[str], resources: Sequence[str] = ()) -> list[Json]:
    """What kustomize makes of deploy/ with these components."""
    up = "../" * (len(folder.resolve().parts) - 1)
    paths = {name: f"{up}{(DEPLOY / name).resolve().relative_to('/')}" for name in ("", *components, *resources)}
    kustomization = {
        "resources": [paths[name] for name in ("", *resources)],
        "components": [paths[name] for name in components],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    done = subprocess.run(
        [str(KUBECTL), "kustomize", str(folder)], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    return documents(done.stdout)


def documents(text: str) -> list[Json]:
    """Every object in a stream of manifests, anchors written out."""
    return [json.loads(json.dumps(one)) for one in yaml.load_all(text, yaml.CSafeLoader) if one]


def by_name(objects: Iterable[Json]) -> dict[str, Json]:
    """Kind and name -> the object; no two of them are the same."""
    found: dict[str, Json] = {}
    for one in objects:
        key = f"{one['kind']} {one['metadata']['name']}"
        assert key not in found, key
        found[key] = one
    return found
