"""The image of the Slurm servers, built once for each content of its folder.

The base comes from a registry where one can be reached, and from Debian's packages elsewhere.
"""

import hashlib
import pathlib
import re
import shutil
import subprocess

from localcluster import engine, lock, packages, progress
from localcluster.config import PROJECT, Config

FOLDER = PROJECT / "hack" / "cluster" / "slurm"
REPOSITORY = "slurm-bridge/slurm"
BASE = "debian:forky-slim"
SUITE = "forky"
#: What the build reads; compose.yaml and the like may change without a new image.
INPUTS = ("Dockerfile", "entrypoint")
PULL_SECONDS = 180.0
BUILD_SECONDS = 1200.0


class Image:
    """The part that is there when the engine knows the image of exactly these inputs."""

    name = "slurm-image"

    def state(self, config: Config) -> str | None:
        return tag() if _known(config, tag()) else None

    def prepare(self, config: Config) -> None:
        """The engine is an earlier part, but starting is quick and building is slow."""
        private = engine.Engine()
        if private.state(config) is None:
            with progress.timed(private.name, "starting", "up"):
                private.start(config)
        if self.state(config) is None:
            with progress.timed(self.name, "building", "built"):
                self.start(config)

    def start(self, config: Config) -> None:
        """Under the lock of the cache: a neighbour may build the same."""
        with lock.exclusive(config.cache, self.name):
            if self.state(config) is None:
                _build(config)
                forget_superseded(config, REPOSITORY, tag())

    def stop(self, config: Config) -> None:
        """Nothing to do: images are a cache."""


def _build(config: Config) -> None:
    if not _known(config, BASE):
        _fetch_base(config)
    arguments = ("--network=host", f"--build-arg=BASE={BASE}", f"--build-arg=MIRROR={machine_mirror() or ''}")
    command = ("docker", "build", *arguments, f"--tag={tag()}", str(FOLDER))
    # The classic builder needs no plugin and no image from a registry.
    engine.run(config, command, extra={"DOCKER_BUILDKIT": "0"}, seconds=BUILD_SECONDS)


def forget_superseded(config: Config, repository: str, current: str) -> None:
    """Images of earlier inputs; the engine itself refuses to remove one that a neighbour's container uses."""
    for name in engine.docker(config, "images", "--format", "{{.Repository}}:{{.Tag}}", repository).split():
        if name != current:
            engine.succeeds(config, "rmi", name)


def tag() -> str:
    """The name of the image that these inputs make."""
    digest = hashlib.sha256()
    for name in INPUTS:
        digest.update((FOLDER / name).read_bytes())
    return f"{REPOSITORY}:{digest.hexdigest()[:12]}"


def machine_mirror() -> str | None:
    """Where this machine gets its Debian packages from, if it does."""
    folder = pathlib.Path("/etc/apt")
    files = [folder / "sources.list", *sorted(folder.glob("sources.list.d/*"))]
    return debian_mirror("\n".join(file.read_text() for file in files if file.is_file()))


def debian_mirror(sources: str) -> str | None:
    """The first Debian archive in apt's source lists, in the old format or the new one."""
    match = re.search(r"^\s*(?:deb\s.*?|URIs:\s.*?)(https?://\S+/debian)/?(?:\s|$)", sources, re.MULTILINE)
    return match[1] if match else None


def _known(config: Config, name: str) -> bool:
    return engine.succeeds(config, "image", "inspect", name)


def _fetch_base(config: Config) -> None:
    """From a registry where one answers; else from Debian's packages."""
    if not engine.succeeds(config, "pull", BASE, seconds=PULL_SECONDS):
        _bootstrap_base(config)


def _bootstrap_base(config: Config) -> None:
    packages.require(packages.DEBOOTSTRAP, packages.GPGV)
    root = config.cache / "debootstrap"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    script = "/usr/share/debootstrap/scripts/sid"  # an older debootstrap does not know the suite by name
    command = ["debootstrap", "--variant=minbase", "--include=ca-certificates", SUITE, str(root)]
    command += [machine_mirror() or "", script] if machine_mirror() else []
    engine.run(config, command, seconds=BUILD_SECONDS)
    _import(config, root)
    shutil.rmtree(root)


def _import(config: Config, root: pathlib.Path) -> None:
    packed = root.with_suffix(".tar")
    subprocess.run(("tar", "--directory", root, "--create", "--file", packed, "."), check=True)
    engine.docker(config, "import", str(packed), BASE, seconds=BUILD_SECONDS)
    packed.unlink()
