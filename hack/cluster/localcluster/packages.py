"""What has to be installed on the machine; as root on Debian it is installed, elsewhere the error says what to install.

Go is not in the list: what distributions package is often too old, so `gomodules` asks for it in its own words.
"""

import dataclasses
import os
import pathlib
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterable, Sequence

from localcluster import lock, progress
from localcluster.part import PartError

#: Where Go, Docker and Python look for the authorities they trust: Debian, Fedora, SUSE, Alpine.
_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
_LISTS = pathlib.Path("/var/lib/apt/lists")
_LOCK_SECONDS = 300
#: Both halves of the cluster may need something at once, and there is one package manager.
_lock = threading.Lock()


def has_compose_plugin() -> bool:
    """Whether `docker compose` works; `docker-compose` does the same."""
    if shutil.which("docker") is None:
        return False
    return subprocess.run(("docker", "compose", "version"), capture_output=True, check=False).returncode == 0


def _has_bundle() -> bool:
    return any(pathlib.Path(bundle).exists() for bundle in _BUNDLES)


def _never() -> bool:
    return False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A program, the Debian packages that may bring it (the first that exists does), and what else is as good."""

    program: str
    packages: tuple[str, ...]
    otherwise: Callable[[], bool] = _never

    def is_missing(self) -> bool:
        return shutil.which(self.program) is None and not self.otherwise()


#: Since Debian 13 the docker command is in a package of its own.
DOCKER = Tool(program="docker", packages=("docker-cli", "docker.io"))
DOCKERD = Tool(program="dockerd", packages=("docker.io",))
IPTABLES = Tool(program="iptables", packages=("iptables",))
COMPOSE = Tool(program="docker-compose", packages=("docker-compose",), otherwise=has_compose_plugin)
DEBOOTSTRAP = Tool(program="debootstrap", packages=("debootstrap",))
GPGV = Tool(program="gpgv", packages=("gpgv",))
OPENSSL = Tool(program="openssl", packages=("openssl",))
RUNC = Tool(program="runc", packages=("runc",))
IP = Tool(program="ip", packages=("iproute2",))
CERTIFICATES = Tool(program="update-ca-certificates", packages=("ca-certificates",), otherwise=_has_bundle)

#: Needed by every cluster; the others only where no engine answers or no image can be pulled.
ALWAYS = (DOCKER, COMPOSE, OPENSSL, CERTIFICATES)


def require(*tools: Tool) -> None:
    """Afterwards all of them are there."""
    with _lock:
        missing = [tool for tool in tools if tool.is_missing()]
        if not missing:
            return
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            raise PartError(advice(missing))
        # apt-get waits by itself for the lock on what is installed, but not for the one on its lists.
        with lock.exclusive(_LISTS, "packages"):
            _install([tool for tool in missing if tool.is_missing()])
        still = [tool for tool in missing if tool.is_missing()]
        if still:
            raise PartError(advice(still))


def advice(missing: Iterable[Tool]) -> str:
    """What the user has to install: the programs on any system, the packages on Debian."""
    tools = list(missing)
    programs = ", ".join(tool.program for tool in tools)
    names = " ".join(dict.fromkeys(tool.packages[-1] for tool in tools))
    return f"not installed: {programs}. On Debian: apt-get install {names} (as root, `up` does it by itself)"


def _install(missing: Sequence[Tool]) -> None:
    """A package list can be empty (a fresh image) or older than the archive: then it is read anew."""
    if not missing:
        return
    if not any(_LISTS.glob("*_Packages*")):
        _apt("update")
    try:
        _install_known(missing)
    except PartError:
        _apt("update")
        _install_known(missing)


def _install_known(missing: Sequence[Tool]) -> None:
    names = list(dict.fromkeys(next(filter(_is_known, tool.packages), tool.packages[-1]) for tool in missing))
    with progress.timed("packages", f"installing {' '.join(names)}", "installed"):
        _apt("install", "--yes", "--no-install-recommends", *names)


def _is_known(package: str) -> bool:
    return subprocess.run(("apt-cache", "show", package), capture_output=True, check=False).returncode == 0


def _apt(*arguments: str) -> None:
    command = ("apt-get", f"--option=DPkg::Lock::Timeout={_LOCK_SECONDS}", *arguments)
    # Where an init system runs some packages start a server of their own, unless this says otherwise.
    variables = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    done = subprocess.run(command, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PartError(f"{' '.join(command)}: {done.stderr.strip()[-2000:]}")
