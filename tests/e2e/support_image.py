"""The daemon's image, built by deploy/Dockerfile from this checkout, in the engine of the local cluster."""

import hashlib
import pathlib
import sys
import tempfile
from collections.abc import Iterable

import slurm_bridge
from localcluster import engine, image
from localcluster.config import PROJECT, Config

REPOSITORY = "slurm-bridge/daemon"
BASE_REPOSITORY = "slurm-bridge/python"
BASE_FOLDER = pathlib.Path(__file__).parent / "python-base"
DOCKERFILE = PROJECT / "deploy" / "Dockerfile"
ROOTFS = PROJECT / "deploy" / "rootfs.py"
LOCKS = tuple(PROJECT / "requirements" / name for name in ("run.lock", "dev.lock"))
WHEELS = PROJECT / "build" / "wheels"
SECONDS = 600.0


def built(config: Config) -> str:
    """The name of the image of exactly these sources; seconds when it is known, a minute when it is not."""
    base = _base(config)
    tag = f"{REPOSITORY}:{_digest([DOCKERFILE, ROOTFS, *LOCKS, PROJECT / 'pyproject.toml', *_sources()], base)}"
    if not engine.succeeds(config, "image", "inspect", tag):
        _fetch_wheels(config, base)
        arguments = (f"--build-arg=BASE={base}", "--build-arg=PIP_OPTIONS=--no-index --find-links=wheels")
        _build(config, tag, DOCKERFILE, PROJECT, *arguments)
        _forget_others(config, tag)
    return tag


#: The version that comes after this one.
NEXT = f"{slurm_bridge.__version__}.post1"


def successor(config: Config, name: str) -> str:
    """The name of an image that differs from this one in the version of the program."""
    tag = f"{name}-next"
    if not engine.succeeds(config, "image", "inspect", tag):
        where = "import slurm_bridge; print(slurm_bridge.__file__)"
        file = engine.docker(config, "run", "--rm", "--network=none", "--entrypoint=python3", name, "-c", where)
        container = engine.docker(config, "create", name)
        try:
            with tempfile.NamedTemporaryFile("w", suffix=".py") as changed:
                written = pathlib.Path(slurm_bridge.__file__).read_text()
                changed.write(written.replace(f'"{slurm_bridge.__version__}"', f'"{NEXT}"'))
                changed.flush()
                # Every user may read the file.
                pathlib.Path(changed.name).chmod(0o644)
                engine.docker(config, "cp", changed.name, f"{container}:{file}")
            engine.docker(config, "commit", container, tag)
        finally:
            engine.docker(config, "rm", container)
    return tag


def _base(config: Config) -> str:
    file = BASE_FOLDER / "Dockerfile"
    tag = f"{BASE_REPOSITORY}:{_digest([file], image.BASE)}"
    if not engine.succeeds(config, "image", "inspect", tag):
        mirror = f"--build-arg=MIRROR={image.machine_mirror() or ''}"
        _build(config, tag, file, BASE_FOLDER, f"--build-arg=BASE={image.BASE}", mirror)
    return tag


def _build(config: Config, tag: str, file: pathlib.Path, folder: pathlib.Path, *arguments: str) -> None:
    command = ("docker", "build", "--network=host", f"--file={file}", f"--tag={tag}", *arguments, str(folder))
    # The classic builder needs no plugin and no image from a registry.
    engine.run(config, command, extra={"DOCKER_BUILDKIT": "0"}, seconds=SECONDS)


def _fetch_wheels(config: Config, base: str) -> None:
    """By the pip that installed this environment, so that whatever index and certificates it has will do."""
    version = ("python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])")
    python = engine.docker(config, "run", "--rm", "--network=none", base, *version)
    builder = WHEELS.parent / "build.lock"
    WHEELS.mkdir(parents=True, exist_ok=True)
    builder.write_text(_pin_of("setuptools"))
    for lock in (LOCKS[0], builder):
        options = (f"--python-version={python}", "--only-binary=:all:", "--require-hashes", f"--dest={WHEELS}")
        command = (sys.executable, "-m", "pip", "download", "--quiet", *options, f"--requirement={lock}")
        engine.run(config, command, seconds=SECONDS)


def _pin_of(package: str) -> str:
    """The lines of one package in the lock."""
    text = LOCKS[1].read_text()
    begin = text.index(f"\n{package}==") + 1
    lines: list[str] = []
    for line in text[begin:].splitlines():
        lines.append(line)
        if not line.endswith("\\"):
            break
    return "\n".join(lines) + "\n"


def _sources() -> list[pathlib.Path]:
    return sorted((PROJECT / "slurm_bridge").rglob("*.py"))


def _digest(files: Iterable[pathlib.Path], *words: str) -> str:
    digest = hashlib.sha256("\0".join(words).encode())
    for file in files:
        digest.update(f"{file.relative_to(PROJECT)}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def _forget_others(config: Config, tag: str) -> None:
    """Images of earlier sources; one that a container still uses is refused, and goes the next time."""
    for name in engine.docker(config, "images", "--format", "{{.Repository}}:{{.Tag}}", REPOSITORY).split():
        if name != tag:
            engine.succeeds(config, "rmi", name)
