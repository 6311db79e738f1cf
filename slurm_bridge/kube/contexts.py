"""Which cluster, identity and namespace a user of kubectl means, by the same rules.

1 --kubeconfig       one file, or several with colons between them
2 KUBECONFIG         likewise; what an earlier file says wins
3 ~/.kube/config
4 the service account of the pod in which the command runs
"""

import dataclasses
import os
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

import yaml

from slurm_bridge import errors
from slurm_bridge.kube import config
from slurm_bridge.kube.config import Access

_SERVICE_ACCOUNT: Final = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")
_DEFAULT: Final = "default"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class UserContext:
    """The API server with the user's identity there, and the namespace for objects without one."""

    access: Access
    namespace: str


def resolve(
    environ: Mapping[str, str],
    *,
    kubeconfig: str | None = None,
    context: str | None = None,
    account: pathlib.Path = _SERVICE_ACCOUNT,
) -> UserContext:
    """As kubectl finds them; BadConfiguration says what to give where there is nothing."""
    home = pathlib.Path(environ.get("HOME", "/")) / ".kube" / "config"
    given = kubeconfig or environ.get("KUBECONFIG") or str(home)
    files = [path for text in given.split(os.pathsep) if text and (path := pathlib.Path(text).expanduser()).exists()]
    if files:
        name = context or _current(files)
        access = config.from_kubeconfig(pathlib.Path(os.pathsep.join(map(str, files))), context=name)
        return UserContext(access=access, namespace=_namespace(files, name))
    if kubeconfig is None and context is None and (account / "token").exists():
        namespace = (account / "namespace").read_text(encoding="utf-8").strip()
        return UserContext(access=config.in_cluster(folder=account, environ=environ), namespace=namespace or _DEFAULT)
    raise errors.BadConfiguration(f"there is no kubeconfig {given}: give --kubeconfig FILE, or set KUBECONFIG")


def _current(files: Iterable[pathlib.Path]) -> str | None:
    """The first file that names one, as kubectl does; the package takes the last."""
    named = (_read(file).get("current-context") for file in files)
    return next((name for name in named if isinstance(name, str) and name), None)


def _namespace(files: Iterable[pathlib.Path], context: str | None) -> str:
    for file in files:
        listed = _read(file).get("contexts")
        for one in listed if isinstance(listed, list) else ():
            if isinstance(one, dict) and one.get("name") == context:
                inside = one.get("context")
                namespace = inside.get("namespace") if isinstance(inside, dict) else None
                return namespace if isinstance(namespace, str) and namespace else _DEFAULT
    return _DEFAULT


def _read(file: pathlib.Path) -> Mapping[str, Any]:
    """Errors are told by the reader of the whole, without quoting what it holds."""
    try:
        found = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    return found if isinstance(found, dict) else {}
