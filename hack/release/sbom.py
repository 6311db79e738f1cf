"""The software bill of materials: CycloneDX 1.6 as JSON, of the lock file and of what the image has beside it.

Licences and dependencies are those that the installed packages of the lock state. Equal inputs make equal bytes.
"""

import datetime as dt
import importlib.metadata
import json
import platform
import re
import tomllib
import urllib.parse
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Final

Json = dict[str, Any]

NAME: Final = "slurm-bridge"

_PIN: Final = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)
_REQUIRED: Final = re.compile(r"^[A-Za-z0-9._-]+")
#: A longer text is the licence itself, not its name.
_MOST_OF_NAME: Final = 80
_DEB_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


def pins(lock: str) -> Mapping[str, str]:
    """Name -> version, for each package of a lock file."""
    return {normal(name): version for name, version in _PIN.findall(lock)}


def normal(name: str) -> str:
    """As registries compare names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def document(version: str, project: str, lock: str, system: Mapping[str, Any] | None, epoch: int) -> str:
    """The bill of one release; `project` is the text of pyproject.toml, `system` what rootfs.py has recorded."""
    pinned = pins(lock)
    python = [_package(name, pinned[name]) for name in sorted(pinned)]
    main = _component("application", NAME, version, f"pkg:pypi/{NAME}@{version}")
    main["licenses"] = [{"expression": "Apache-2.0"}]
    direct = {_name_of(one) for one in tomllib.loads(project)["project"]["dependencies"]}
    refs = {one["name"]: one["bom-ref"] for one in python}
    found: Json = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": dt.datetime.fromtimestamp(epoch, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "tools": {"components": [{"type": "application", "name": "hack/release/sbom.py", "version": version}]},
            "component": main,
        },
        "components": [*python, *_system(system or {})],
        "dependencies": [
            {"ref": main["bom-ref"], "dependsOn": sorted(refs[name] for name in direct)},
            *({"ref": refs[name], "dependsOn": sorted(refs[one] for one in _requires(name, refs))} for name in refs),
        ],
    }
    content = json.dumps(found, sort_keys=True)
    found["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}"
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


def _component(type_: str, name: str, version: str, purl: str) -> Json:
    return {"type": type_, "bom-ref": purl, "name": name, "version": version, "purl": purl}


def _package(name: str, version: str) -> Json:
    made = _component("library", name, version, f"pkg:pypi/{name}@{urllib.parse.quote(version)}")
    licences = _licences(name)
    return {**made, "licenses": licences} if licences else made


def _licences(name: str) -> list[Json]:
    """As the package says: an expression, else a name, else what its classifiers end with."""
    metadata = importlib.metadata.metadata(name)
    for expression in metadata.get_all("License-Expression") or ():
        return [{"expression": expression}]
    said = next(iter(metadata.get_all("License") or ()), "").strip()
    if said and len(said) <= _MOST_OF_NAME and "\n" not in said:
        return [{"license": {"name": said}}]
    classifiers = (one.split(" :: ")[-1] for one in metadata.get_all("Classifier") or () if one.startswith("License"))
    return [{"license": {"name": one}} for one in classifiers]


def _requires(name: str, known: Iterable[str]) -> set[str]:
    """Packages of the lock that a package names, also for other platforms: more than needed rather than less."""
    named = (one for one in importlib.metadata.requires(name) or () if "extra ==" not in one)
    return {_name_of(one) for one in named} & set(known)


def _name_of(requirement: str) -> str:
    found = _REQUIRED.match(requirement)
    if found is None:
        raise ValueError(f"not a requirement: {requirement!r}")
    return normal(found[0])


def _system(system: Mapping[str, Any]) -> list[Json]:
    """The interpreter, and the packages of Debian whose files the image has."""
    found = []
    if system:
        version = str(system["python"])
        found.append(_component("platform", "cpython", version, f"pkg:generic/cpython@{version}"))
    machine = platform.machine()
    for name, version in sorted(system.get("debian", {}).items()):
        purl = f"pkg:deb/debian/{name}@{urllib.parse.quote(version)}?arch={_DEB_ARCHITECTURES.get(machine, machine)}"
        found.append(_component("library", name, version, purl))
    return found
