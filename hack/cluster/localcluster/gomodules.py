"""The servers that are built from Go modules, once per version: their binaries and manifests outlive every cluster.

Each tool has a module of its own in `hack/cluster/go`, because their dependencies disagree; go.sum pins what is built.
A stamp beside a product says which inputs it was made of, so that neither Go nor the network is needed again until
they change.
"""

import dataclasses
import filecmp
import hashlib
import pathlib
import shutil
import subprocess
from collections.abc import Callable, Iterable

from localcluster import lock, progress
from localcluster.config import PROJECT, Config
from localcluster.part import PartError

SOURCES = PROJECT / "hack" / "cluster" / "go"
_KUBERNETES = "1.36.3"
_VERSION = "k8s.io/component-base/version"
# Without it a server calls itself v0.0.0, and clients guess wrong about what it can do.
_STAMP = f" -X {_VERSION}.gitVersion=v{_KUBERNETES} -X {_VERSION}.gitMajor=1 -X {_VERSION}.gitMinor=36"
_MINUTES = 60 * 60.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A folder with go.mod, and what is made of it: binary name -> package, and files of one of its requirements.

    A module that only collects commands of others names them in tools.go; the package of a command of its own is `.`.
    """

    folder: str
    binaries: tuple[tuple[str, str], ...] = ()
    link: str = ""
    manifests_of: str = ""
    manifests: tuple[str, ...] = ()


#: In the order in which the cluster needs them, so that a broken build shows early.
MODULES = (
    Module(folder="etcd", binaries=(("etcd", "go.etcd.io/etcd/server/v3"),)),
    Module(
        folder="kubernetes",
        binaries=tuple(
            (name, f"k8s.io/kubernetes/cmd/{name}")
            # kubectl is for people and tests; kube-scheduler is not started: it is there to be compared with
            for name in ("kube-apiserver", "kube-controller-manager", "kubectl", "kube-scheduler")
        ),
        link=_STAMP,
    ),
    Module(folder="kwok", binaries=(("kwok", "sigs.k8s.io/kwok/cmd/kwok"),)),
    Module(
        folder="coscheduling",
        manifests_of="sigs.k8s.io/scheduler-plugins",
        manifests=("config/crd/bases/scheduling.x-k8s.io_podgroups.yaml",),
    ),
    Module(
        folder="jobset",
        binaries=(("jobset", "sigs.k8s.io/jobset"),),
        manifests_of="sigs.k8s.io/jobset",
        manifests=(
            "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml",
            "config/components/webhook/manifests.yaml",
        ),
    ),
    Module(
        folder="lws",
        binaries=(("lws", "sigs.k8s.io/lws/cmd"),),
        manifests_of="sigs.k8s.io/lws",
        manifests=(
            "config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml",
            "config/webhook/manifests.yaml",
        ),
    ),
)


#: What real nodes need beside the container engine's runc.
REAL = (
    Module(
        folder="cni",
        binaries=tuple(
            (name, f"github.com/containernetworking/plugins/plugins/{kind}/{name}")
            for kind, name in (("main", "ptp"), ("main", "loopback"), ("ipam", "host-local"))
        ),
    ),
    Module(
        folder="containerd",
        binaries=tuple(
            (name, f"github.com/containerd/containerd/v2/cmd/{name}")
            for name in ("containerd", "containerd-shim-runc-v2", "ctr")
        ),
    ),
    Module(folder="coredns", binaries=(("coredns", "."),)),
    Module(folder="dra", binaries=(("dra", "."),)),
    Module(folder="kubelet", binaries=(("kubelet", "k8s.io/kubernetes/cmd/kubelet"),), link=_STAMP),
)

#: Controllers of frameworks that make pods, for a cluster with FRAMEWORKS. Those whose package is `.` are started by a
#: command of ours, because the published one needs more of the machine than a port on loopback.
FRAMEWORKS = (
    Module(
        folder="mpi",
        binaries=(("mpi", "."),),
        manifests_of="github.com/kubeflow/mpi-operator",
        manifests=("manifests/base/kubeflow.org_mpijobs.yaml",),
    ),
    Module(
        folder="trainer",
        binaries=(("trainer", "."),),
        manifests_of="github.com/kubeflow/trainer/v2",
        manifests=tuple(
            f"manifests/base/crds/trainer.kubeflow.org_{one}.yaml"
            for one in ("trainjobs", "trainingruntimes", "clustertrainingruntimes")
        ),
    ),
    Module(
        folder="kuberay",
        binaries=(("kuberay", "github.com/ray-project/kuberay/ray-operator"),),
        manifests_of="github.com/ray-project/kuberay/ray-operator",
        manifests=tuple(f"config/crd/bases/ray.io_{one}.yaml" for one in ("rayclusters", "rayjobs", "rayservices")),
    ),
    Module(
        folder="kueue",
        binaries=(("kueue", "."),),
        manifests_of="sigs.k8s.io/kueue",
        manifests=(
            *(
                f"config/components/crd/bases/kueue.x-k8s.io_{one}.yaml"
                for one in (
                    "admissionchecks",
                    "clusterqueues",
                    "cohorts",
                    "localqueues",
                    "resourceflavors",
                    "topologies",
                    "workloadpriorityclasses",
                    "workloads",
                )
            ),
            "config/components/webhook/manifests.yaml",
        ),
    ),
    Module(
        folder="argo",
        binaries=(("argo", "."),),
        manifests_of="github.com/argoproj/argo-workflows/v4",
        manifests=tuple(
            f"manifests/base/crds/minimal/argoproj.io_{one}.yaml"
            for one in (
                "clusterworkflowtemplates",
                "cronworkflows",
                "workflowartifactgctasks",
                "workflows",
                "workflowtaskresults",
                "workflowtasksets",
                "workflowtemplates",
            )
        ),
    ),
)

#: Tools of tests, which are no part of a cluster: `tool` builds one when a test first needs it.
TOOLS = (Module(folder="helm", binaries=(("helm", "helm.sh/helm/v4/cmd/helm"),)),)


def modules(config: Config) -> tuple[Module, ...]:
    """Those of a cluster like this one."""
    return (*MODULES, *(FRAMEWORKS if config.frameworks else ()), *(REAL if config.real_nodes else ()))


def binary(config: Config, name: str) -> pathlib.Path:
    """Where a built server is."""
    return config.binaries / name


def manifest(config: Config, folder: str, name: str) -> pathlib.Path:
    """A manifest that came out of a module, by its file name."""
    return config.cache / "manifests" / folder / name


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """One thing in the cache, the text of what it is made from, and how."""

    name: str
    file: pathlib.Path
    inputs: str
    make: Callable[[pathlib.Path], None]

    @property
    def stamp(self) -> pathlib.Path:
        return self.file.with_name(self.file.name + ".stamp")

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.inputs.encode()).hexdigest()

    def is_fresh(self) -> bool:
        return self.file.exists() and self.stamp.exists() and self.stamp.read_text().strip() == self.digest

    def build(self) -> None:
        """Beside the old one first, so that a failed build leaves it, and a running server keeps its file.

        When nothing came out differently the old file stays as it is: no server is restarted for an equal binary.
        """
        self.file.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.file.with_name(self.file.name + ".new")
        self.make(fresh)
        if self.file.exists() and filecmp.cmp(fresh, self.file, shallow=False):
            fresh.unlink()
        else:
            fresh.replace(self.file)
        self.stamp.write_text(self.digest + "\n")


def products(config: Config) -> list[Product]:
    """Everything that is made of the modules, in their order."""
    return [
        product for module in modules(config) for product in (*_binaries(config, module), *_manifests(config, module))
    ]


def tool(config: Config, name: str) -> pathlib.Path:
    """Where a tool of tests is. It is built first unless the cache has it."""
    (product,) = (one for module in TOOLS for one in _binaries(config, module) if one.name == name)
    with lock.exclusive(config.binaries, name):
        if not product.is_fresh():
            with progress.timed(name, f"building {name}", f"built {name}"):
                product.build()
    return product.file


def _binaries(config: Config, module: Module) -> Iterable[Product]:
    for name, package in module.binaries:
        command = ("build", "-trimpath", "-ldflags", "-s -w" + module.link, package)
        yield Product(
            name=name,
            file=binary(config, name),
            inputs=_sources(module) + "\n".join(command),
            make=lambda fresh, command=command: _build(module, command, fresh),  # type: ignore[misc]
        )


def _manifests(config: Config, module: Module) -> Iterable[Product]:
    for path in module.manifests:
        file = manifest(config, module.folder, pathlib.PurePath(path).name)
        yield Product(
            name=f"{module.folder}/{file.name}",
            file=file,
            inputs=_sources(module) + path,
            make=lambda fresh, path=path: _copy(module, path, fresh),  # type: ignore[misc]
        )


def _sources(module: Module) -> str:
    folder = SOURCES / module.folder
    return "\n".join(file.read_text() for file in (folder / "go.mod", folder / "go.sum", *sorted(folder.glob("*.go"))))


def _build(module: Module, command: tuple[str, ...], fresh: pathlib.Path) -> None:
    verb, *rest = command
    _go(module, verb, "-o", str(fresh), *rest)


def _copy(module: Module, path: str, fresh: pathlib.Path) -> None:
    _go(module, "mod", "download", module.manifests_of)
    folder = _go(module, "list", "-m", "-f", "{{.Dir}}", module.manifests_of).strip()
    shutil.copyfile(pathlib.Path(folder) / path, fresh)


def _go(module: Module, *arguments: str) -> str:
    go = shutil.which("go")
    if go is None:
        raise PartError(
            "building the Kubernetes servers (once) needs Go, and there is no `go` on PATH: install Go 1.26 or newer "
            "from https://go.dev/dl/ (or your package manager) and start again"
        )
    result = subprocess.run(
        ["nice", go, *arguments],
        cwd=SOURCES / module.folder,
        capture_output=True,
        text=True,
        timeout=_MINUTES,
        check=False,
    )
    if result.returncode:
        said = "\n".join((result.stdout + result.stderr).splitlines()[-20:])
        raise PartError(f"`go {' '.join(arguments)}` in {SOURCES / module.folder} failed:\n{said}")
    return result.stdout


class Binaries:
    """The build products, as the first part of the Kubernetes half."""

    name = "binaries"

    def prepare(self, config: Config) -> None:
        """One after the other: the compiler uses every core by itself, and clusters share what it makes."""
        with lock.exclusive(config.binaries, self.name):
            for product in products(config):
                if product.is_fresh():
                    continue
                with progress.timed(self.name, f"building {product.name}", f"built {product.name}"):
                    product.build()

    def state(self, config: Config) -> str | None:
        built = products(config)
        return f"{len(built)} built" if all(product.is_fresh() for product in built) else None

    def start(self, config: Config) -> None:
        self.prepare(config)

    def stop(self, config: Config) -> None:
        """They are kept: `down --purge` removes the cache."""
