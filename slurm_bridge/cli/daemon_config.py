"""The configuration of the daemon that runs in a cluster, as far as a user may read it.

Any user can label a ConfigMap like this one. So what is found is named to the user, several are refused, and of the one
that is used no address, token or file is used: pods are translated by it, and no server but the API server is asked.
"""

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from slurm_bridge import app, errors, ports
from slurm_bridge.hooks import registry
from slurm_bridge.model import kinds, texts
from slurm_bridge.model.services import ConfigMap
from slurm_bridge.runtime import packages
from slurm_bridge.settings import loader, sources
from slurm_bridge.settings.groups import HookSettings
from slurm_bridge.settings.model import Settings
from slurm_bridge.settings.sources import WrittenText

#: What all objects of deploy/ are labelled with, and the namespace of deploy/.
LABEL: Final = "app.kubernetes.io/name=slurm-bridge"
NAMESPACE: Final = "slurm-bridge-system"
KEY: Final = sources.KEY

#: What a configuration has to say, and what is not used here.
_ASSUMED: Final = WrittenText(
    name="the defaults",
    text="cluster_id: kubernetes\nslurm: {url: 'http://127.0.0.1', token_file: /var/run/secrets/slurm/token}\n",
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FoundConfiguration:
    """The settings, and what the user should know about them. `source`: their ConfigMap, or why they are assumed."""

    settings: Settings
    notes: tuple[str, ...]
    source: str
    assumed: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SoughtPods:
    """The pods that are the bridge's: those of its schedulers, and those that it has bound.

    `cluster_id`: that of the bridge; None where its configuration is not known, and the names are assumed.
    """

    scheduler_names: tuple[str, ...]
    cluster_id: str | None
    source: str

    def __str__(self) -> str:
        named = texts.listed(self.scheduler_names)
        said = f"the scheduler name {named} is assumed"
        if self.cluster_id is not None:
            said = f"the scheduler name{' is' if len(self.scheduler_names) == 1 else 's are'} {named}"
        return texts.plain(f"{said} ({self.source}); --daemon NAMESPACE/NAME names another ConfigMap")


def find(cluster: ports.Cluster, place: str | None, overrides: Sequence[str] = ()) -> FoundConfiguration:
    """The configuration at `place` (NAMESPACE or NAMESPACE/NAME), or the only one that the user may read.

    Where there is none, the defaults, which are named. BadConfiguration: there are several, or it has an error.
    """
    found = _read(cluster, place)
    if isinstance(found, str):
        return assumed(found, overrides)
    where = "/".join(found.key)
    settings = loader.load(WrittenText(name=f"ConfigMap {where}", text=found.data[KEY]), {}, overrides)
    hooks, left_out = _usable(settings)
    namespace, name = found.key
    inside = (
        f"Slurm and the nodes are asked in the pod of the daemon, if you may: kubectl --namespace {namespace} exec "
        f"deploy/{name} -- slurm-bridge explain NAMESPACE/POD --config /etc/slurm-bridge/{KEY}"
    )
    notes = (f"the configuration is that of ConfigMap {where}", inside)
    settings = settings.model_copy(update={"hooks": hooks})
    return FoundConfiguration(settings=settings, notes=(*notes, *left_out), source=f"ConfigMap {where}")


def assumed(why: str, overrides: Sequence[str] = ()) -> FoundConfiguration:
    """The defaults, and the reason why they are assumed."""
    note = f"{why}: the defaults are assumed, without the policy, hooks and default values of your site"
    return FoundConfiguration(settings=loader.load(_ASSUMED, {}, overrides), notes=(note,), source=why, assumed=True)


def sought(cluster: ports.Cluster, place: str | None) -> SoughtPods:
    """By the configuration that the user may read; a note where that fails, and the default name is assumed."""
    try:
        found = find(cluster, place)
    except errors.BridgeError as problem:
        if place is not None:
            raise
        found = assumed(str(problem).splitlines()[0])
        named = ", ".join(found.settings.scheduler_names)
        tell([f"{found.source}: shown are pods with the scheduler name {named}"])
    return SoughtPods(
        scheduler_names=tuple(found.settings.scheduler_names),
        cluster_id=None if found.assumed else found.settings.cluster_id,
        source=found.source,
    )


def tell(notes: Sequence[str]) -> None:
    """On standard error, so that what a command prints can be read by programs."""
    for note in notes:
        print(f"note: {texts.plain(note)}", file=sys.stderr)


def _read(cluster: ports.Cluster, place: str | None) -> ConfigMap | str:
    """The ConfigMap, or why there is none."""
    if place is not None and "/" in place:
        namespace, _, name = place.partition("/")
        found = cluster.get(kinds.CONFIGMAPS, namespace, name)
        if found is None or KEY not in found.data:
            raise errors.BadConfiguration(f"there is no ConfigMap {place} with the key {KEY}")
        return found
    maps, refused = _listed(cluster, place)
    if not maps:
        if place is not None:
            raise errors.BadConfiguration(f"no ConfigMap with the label {LABEL} and the key {KEY} is in {place}")
        return refused or f"no ConfigMap with the label {LABEL} was found"
    ours = [one for one in maps if one.metadata.namespace == NAMESPACE] if len(maps) > 1 else maps
    if len(ours) != 1:
        named = texts.listed("/".join(one.key) for one in maps)
        raise errors.BadConfiguration(f"several daemons have a configuration: {named}; name one with --daemon")
    return ours[0]


def _listed(cluster: ports.Cluster, namespace: str | None) -> tuple[Sequence[ConfigMap], str]:
    """All that the user may read: everywhere, else in the namespace of deploy/; and why there is none."""
    refused = ""
    for place in (namespace,) if namespace else (None, NAMESPACE):
        try:
            found = cluster.list(kinds.CONFIGMAPS, ports.Scope(namespace=place, labels=LABEL)).items
        except errors.NotAuthorized:
            refused = f"you may not read ConfigMaps in {namespace or NAMESPACE}"
        else:
            return [one for one in found if KEY in one.data], ""
    return (), refused


def _usable(settings: Settings) -> tuple[tuple[HookSettings, ...], list[str]]:
    """The hooks that work here, and notes about the others: a package or a file may be where the daemon is only."""
    installed: Mapping[str, object] = {**registry.BUILTIN, **packages.offered(registry.GROUP)}
    usable, notes = list[HookSettings](), list[str]()
    for hook in settings.hooks:
        if hook.name not in installed:
            notes.append(f"hook {hook.name} is left out: its package is not installed here")
            continue
        try:
            app.try_out(settings.model_copy(update={"hooks": (hook,)}))
        except errors.BadConfiguration as problem:
            notes.append(f"hook {hook.name} is left out: {str(problem).splitlines()[0]}")
        else:
            usable.append(hook)
    return tuple(usable), notes
