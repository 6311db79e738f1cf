"""A pod of deploy/ as a `docker run`: what a kubelet would do with exactly this pod, done with the engine's words.

The pod is the one that the API server made from the manifest, so that nothing can drift: arguments, variables, mounts,
user, read-only root, limits and probes are all read from it. What this knows no words for is an error, not skipped.
"""

import base64
import dataclasses
import os
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from localcluster import engine
from localcluster.config import Config
from tests.e2e import support_daemon, support_servers
from tests.e2e.support_servers import Json

#: A kubelet's default for files of volumes that say nothing.
_MODE = 0o644


#: By the name that a port has in the manifest: what says its number.
_PORTS = {"http": "SLURM_BRIDGE__WEB__PORT", "probes": "SLURM_BRIDGE__WEB__PROBES_PORT"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Kubelet:
    """What pods are run with: the engine, the API server, and a folder for volumes."""

    config: Config
    kube: support_servers.Kubernetes
    folder: pathlib.Path
    image: str

    def run(self, pod: Json, variables: Mapping[str, str]) -> "Container":
        """Start the pod's container; `variables` override those of the manifest."""
        name = str(pod["metadata"]["name"])
        engine.docker(self.config, "run", "--detach", *self.arguments(pod, variables))
        return Container(config=self.config, name=name, pod=pod, variables=variables)

    def arguments(self, pod: Json, variables: Mapping[str, str]) -> list[str]:
        """Everything after `docker run`: options, image, arguments."""
        spec, metadata = pod["spec"], pod["metadata"]
        (container,) = spec["containers"]
        given = {"KUBERNETES_SERVICE_HOST": self.kube.host, "KUBERNETES_SERVICE_PORT": str(self.kube.port)}
        own = {one["name"]: one["value"] for one in container.get("env", ())}
        return [
            *(f"--name={metadata['name']}", f"--hostname={metadata['name']}", "--network=host"),
            f"--stop-timeout={spec['terminationGracePeriodSeconds']}",
            *(f"--env={key}={value}" for key, value in {**given, **own, **variables}.items()),
            *_security(spec["securityContext"], container["securityContext"]),
            *_resources(container["resources"]),
            *self._mounts(pod, container),
            self.image,
            *container["args"],
        ]

    def _mounts(self, pod: Json, container: Json) -> Iterator[str]:
        volumes = {one["name"]: one for one in pod["spec"]["volumes"]}
        for mount in container["volumeMounts"]:
            volume = volumes[mount["name"]]
            if "emptyDir" in volume:
                size = support_servers.mebibytes(volume["emptyDir"]["sizeLimit"])
                assert volume["emptyDir"]["medium"] == "Memory"
                yield f"--tmpfs={mount['mountPath']}:size={size}m,mode=1777"
            else:
                assert mount["readOnly"], f"{mount['name']} is written by the kubelet alone"
                yield f"--volume={self._folder(pod, volume)}:{mount['mountPath']}:ro"

    def _folder(self, pod: Json, volume: Json) -> pathlib.Path:
        """A folder with the files of one volume, owned as a kubelet would."""
        folder = self.folder / pod["metadata"]["name"] / volume["name"]
        folder.mkdir(parents=True)
        group = pod["spec"]["securityContext"]["fsGroup"]
        for name, (content, mode) in self._files(pod, volume).items():
            (folder / name).write_bytes(content)
            (folder / name).chmod(mode)
            os.chown(folder / name, 0, group)
        return folder

    def _files(self, pod: Json, volume: Json) -> dict[str, tuple[bytes, int]]:
        sources = volume["projected"]["sources"] if "projected" in volume else [volume]
        found: dict[str, tuple[bytes, int]] = {}
        for source in sources:
            (kind,) = source.keys() - {"name"}
            mode = source[kind].get("defaultMode") or volume.get("projected", {}).get("defaultMode") or _MODE
            found |= {name: (content, mode) for name, content in _SOURCES[kind](self.kube, pod, source[kind]).items()}
        return found


@dataclasses.dataclass(frozen=True, kw_only=True)
class Container:
    """One running replica."""

    config: Config
    name: str
    pod: Json
    variables: Mapping[str, str]

    def probe(self, kind: str) -> int:
        """The status that a probe of the manifest gets now: `livenessProbe`, `readinessProbe`."""
        (container,) = self.pod["spec"]["containers"]
        asked = container[kind]["httpGet"]
        return support_daemon.look(int(self.variables[_PORTS[asked["port"]]]), asked["path"])[0]

    def kill(self) -> None:
        """SIGKILL to the daemon."""
        engine.docker(self.config, "kill", "--signal=KILL", self.name)

    def stop(self) -> int:
        """As a kubelet ends a pod: SIGTERM, and SIGKILL after the grace period; its exit status."""
        engine.docker(self.config, "stop", self.name)
        return int(engine.docker(self.config, "inspect", "--format={{.State.ExitCode}}", self.name))

    def inspect(self, form: str) -> str:
        """What the engine says of it."""
        return engine.docker(self.config, "inspect", f"--format={form}", self.name)

    def read(self, file: str) -> str:
        """A file, by the only program that the image has beside the daemon."""
        code = f"print(open({file!r}).read())"
        return engine.docker(self.config, "exec", self.name, "python3", "-c", code)

    def logs(self) -> str:
        """The end of what it said."""
        command = ("docker", "logs", "--tail=20", self.name)
        return engine.run(self.config, ("sh", "-c", '"$@" 2>&1', "sh", *command))

    def remove(self) -> None:
        """Whatever state it is in."""
        engine.succeeds(self.config, "rm", "--force", "--volumes", self.name)


def _security(pod: Json, container: Json) -> Iterator[str]:
    assert pod["runAsNonRoot"]
    assert pod["runAsUser"] > 0
    assert pod["seccompProfile"]["type"] == "RuntimeDefault", "the engine's default profile is what is used"
    yield f"--user={pod['runAsUser']}:{pod['runAsGroup']}"
    yield f"--group-add={pod['fsGroup']}"
    yield from (f"--cap-drop={one}" for one in container["capabilities"]["drop"])
    if container["readOnlyRootFilesystem"]:
        yield "--read-only"
    if not container["allowPrivilegeEscalation"]:
        yield "--security-opt=no-new-privileges"


def _resources(resources: Json) -> Iterator[str]:
    yield f"--memory={support_servers.mebibytes(resources['limits']['memory'])}m"


def _config_map(kube: support_servers.Kubernetes, pod: Json, source: Json) -> dict[str, bytes]:
    path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/configmaps/{source['name']}"
    return _chosen({key: text.encode() for key, text in kube.get(path)["data"].items()}, source)


def _secret(kube: support_servers.Kubernetes, pod: Json, source: Json) -> dict[str, bytes]:
    path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/secrets/{source['secretName']}"
    return _chosen({key: base64.b64decode(text) for key, text in kube.get(path)["data"].items()}, source)


def _chosen(data: Mapping[str, bytes], source: Json) -> dict[str, bytes]:
    wanted = {one["key"]: one["path"] for one in source.get("items") or ()} or {key: key for key in data}
    return {path: data[key] for key, path in wanted.items()}


def _token(kube: support_servers.Kubernetes, pod: Json, source: Json) -> dict[str, bytes]:
    """A token of the pod's service account that is good as long as the pod lives."""
    meta, account = pod["metadata"], pod["spec"]["serviceAccountName"]
    bound = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": source["expirationSeconds"], "boundObjectRef": bound},
    }
    answer = kube.create(f"/api/v1/namespaces/{meta['namespace']}/serviceaccounts/{account}/token", body)
    return {source["path"]: answer["status"]["token"].encode()}


def _downward(_: support_servers.Kubernetes, pod: Json, source: Json) -> dict[str, bytes]:
    known = {f"metadata.{key}": str(pod["metadata"][key]) for key in ("name", "namespace", "uid")}
    return {one["path"]: known[one["fieldRef"]["fieldPath"]].encode() for one in source["items"]}


_SOURCES: dict[str, Callable[[support_servers.Kubernetes, Json, Any], dict[str, bytes]]] = {
    "configMap": _config_map,
    "secret": _secret,
    "serviceAccountToken": _token,
    "downwardAPI": _downward,
}
