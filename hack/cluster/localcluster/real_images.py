"""The image of slurmd, and the images that pods of real nodes run, made without a registry.

Both of the latter hold one static program, busybox out of slurmd's image: `localhost/busybox:1` with a link for each of
its commands, and `localhost/pause:1`, which does nothing for as long as a pod lives.
"""

import dataclasses
import hashlib
import io
import json
import pathlib
import platform
import subprocess
import tarfile

from localcluster import engine, gomodules, image, lock, progress
from localcluster.config import PROJECT, Config
from localcluster.part import PartError
from localcluster.real_machine import Machine

FOLDER = PROJECT / "hack" / "cluster" / "slurmd"
REPOSITORY = "slurm-bridge/slurmd"
INPUTS = ("Dockerfile", "entrypoint-slurmd")
BUSYBOX = "localhost/busybox:1"
PAUSE = "localhost/pause:1"
_PROGRAM = "/bin/busybox"
_COMMANDS = {BUSYBOX: ["sh"], PAUSE: ["sleep", "infinity"]}
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def tag() -> str:
    """The name of slurmd's image, for these inputs on that image of the other servers."""
    digest = hashlib.sha256(image.tag().encode())
    for name in INPUTS:
        digest.update((FOLDER / name).read_bytes())
    return f"{REPOSITORY}:{digest.hexdigest()[:12]}"


class Images:
    """The part that builds both; they outlive the cluster."""

    name = "real-images"

    def state(self, config: Config) -> str | None:
        return tag() if engine.succeeds(config, "image", "inspect", tag()) and archive(config).exists() else None

    def start(self, config: Config) -> None:
        """Under the lock of the cache: a neighbour may build the same."""
        with lock.exclusive(config.cache, self.name):
            if not engine.succeeds(config, "image", "inspect", tag()):
                self._build(config)
            if not archive(config).exists():
                _pack(config)

    def stop(self, config: Config) -> None:
        """Nothing to do: images are a cache."""

    def _build(self, config: Config) -> None:
        arguments = ("--network=host", "--force-rm", f"--build-arg=BASE={image.tag()}", f"--tag={tag()}")
        with progress.timed(self.name, f"building {tag()}", "built"):
            command = ("docker", "build", *arguments, str(FOLDER))
            engine.run(config, command, extra={"DOCKER_BUILDKIT": "0"}, seconds=image.BUILD_SECONDS)
        image.forget_superseded(config, REPOSITORY, tag())


def archive(config: Config) -> pathlib.Path:
    """The images of pods, as `docker save` would write them."""
    return config.cache / "images" / f"pods-{tag().rpartition(':')[2]}.tar"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """They are known to the containerd of one node."""

    machine: Machine

    @property
    def name(self) -> str:
        return f"{self.machine.node}-images"

    def state(self, config: Config) -> str | None:
        known = self.machine.run(config, *_ctr(config), "list", "--quiet").split()
        return ", ".join(_COMMANDS) if _COMMANDS.keys() <= set(known) else None

    def start(self, config: Config) -> None:
        """Images of a name that was there before are replaced."""
        options = ("--snapshotter=native", "--local")
        self.machine.run(config, *_ctr(config), "import", *options, str(archive(config)))

    def stop(self, config: Config) -> None:
        """They go with the disk of the machine."""


def _ctr(config: Config) -> tuple[str, ...]:
    """A kubelet's images are in a namespace of their own."""
    return (str(gomodules.binary(config, "ctr")), "--namespace=k8s.io", "images")


def _pack(config: Config) -> None:
    """Beside its place first, so that a build that was killed leaves nothing that looks whole."""
    archive(config).parent.mkdir(parents=True, exist_ok=True)
    program = archive(config).with_name("busybox")
    _extract(config, program)
    fresh = archive(config).with_suffix(".new")
    fresh.write_bytes(packed(program.read_bytes(), _applets(program)))
    fresh.replace(archive(config))
    program.unlink()


def _extract(config: Config, program: pathlib.Path) -> None:
    made = engine.docker(config, "create", "--network=none", tag())
    try:
        engine.docker(config, "cp", f"{made}:{_PROGRAM}", str(program))
    finally:
        engine.docker(config, "rm", "--force", made)


def _applets(program: pathlib.Path) -> list[str]:
    done = subprocess.run((program, "--list"), capture_output=True, text=True, check=False)
    if done.returncode:
        raise PartError(f"{program} does not run here: {done.stderr.strip()}")
    return [name for name in done.stdout.split() if name != "busybox"]


def packed(program: bytes, applets: list[str]) -> bytes:
    """An archive with both images, which share their only layer."""
    layer = _layer(program, applets)
    files = {"layer.tar": layer}
    listed = []
    for number, (name, command) in enumerate(_COMMANDS.items()):
        files[f"{number}.json"] = json.dumps(_image(layer, command)).encode()
        listed.append({"Config": f"{number}.json", "RepoTags": [name], "Layers": ["layer.tar"]})
    files["manifest.json"] = json.dumps(listed).encode()
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as written:
        for name, content in files.items():
            _add(written, name, content)
    return stream.getvalue()


def _image(layer: bytes, command: list[str]) -> dict[str, object]:
    machine = platform.machine()
    return {
        "architecture": _ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "config": {"Cmd": command, "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }


def _layer(program: bytes, applets: list[str]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as written:
        for folder, mode in (("bin", 0o755), ("etc", 0o755), ("tmp", 0o1777)):
            member = tarfile.TarInfo(folder)
            member.type, member.mode = tarfile.DIRTYPE, mode
            written.addfile(member)
        _add(written, _PROGRAM[1:], program, mode=0o755)
        _add(written, "etc/passwd", b"root:x:0:0:root:/:/bin/sh\n")
        _add(written, "etc/group", b"root:x:0:\n")
        for name in applets:
            member = tarfile.TarInfo(f"bin/{name}")
            member.type, member.linkname = tarfile.SYMTYPE, "busybox"
            written.addfile(member)
    return stream.getvalue()


def _add(written: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), mode
    written.addfile(member, io.BytesIO(content))
