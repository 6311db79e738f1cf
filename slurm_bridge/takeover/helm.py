"""The Helm values of SchedMD's bridge as a configuration of this one.

Each value of its chart is in the table once: with the keys of `config.yaml` that follow from it, or with what to do
instead. A value that is not in the table is named, and never dropped in silence.
"""

import dataclasses
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from slurm_bridge import errors
from slurm_bridge.runtime import safe_yaml


class _Unusable(ValueError):
    """The value has no form that the chart accepts."""


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise _Unusable("is no text")
    return value


def _optional(value: object) -> str | None:
    return _text(value) or None


def _names(value: object) -> list[str]:
    return [_text(value)]


def _list(value: object) -> list[str]:
    if not isinstance(value, list):
        raise _Unusable("is no list of names")
    return [_text(one) for one in value]


def _selector(value: object) -> str:
    """A label selector of Kubernetes in its own notation, as `kubectl --selector` takes it."""
    given = value if isinstance(value, Mapping) else {}
    if value != given or not given.keys() <= {"matchLabels", "matchExpressions"}:
        raise _Unusable("is no label selector")
    labels, terms = given.get("matchLabels") or {}, given.get("matchExpressions") or []
    if not isinstance(labels, Mapping) or not isinstance(terms, list):
        raise _Unusable("is no label selector")
    return ",".join([*(f"{_label(key)}={_label(text)}" for key, text in labels.items()), *map(_term, terms)])


def _term(term: object) -> str:
    given = term if isinstance(term, Mapping) else {}
    form, values = _TERMS.get(str(given.get("operator"))), given.get("values") or []
    if form is None or not isinstance(values, list) or bool(values) != ("{values}" in form):
        raise _Unusable("has a term that is no term of a label selector")
    return form.format(key=_label(given.get("key")), values=",".join(map(_label, values)))


def _label(value: object) -> str:
    if not isinstance(value, str) or not _LABEL.fullmatch(value):
        raise _Unusable("has a key or value that is none of a label")
    return value


_LABEL: Final = re.compile(r"[-A-Za-z0-9_./]{1,317}")
_TERMS: Final = {
    "In": "{key} in ({values})",
    "NotIn": "{key} notin ({values})",
    "Exists": "{key}",
    "DoesNotExist": "!{key}",
}


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _Unusable("is no number")
    return max(0, min(10, value))


def _url(value: object) -> str:
    """A URL may hold a password: a token has no place in this file."""
    text = _text(value)
    parts = urlsplit(text)
    if parts.username is not None or parts.password is not None:
        raise _Unusable("holds a user or a password")
    return text


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HelmValue:
    """One value of the chart, or all below it where it ends in `.*`.

    `key` is the key of `config.yaml` that follows from it by `make`, "" where none does; `default` is the chart's.
    """

    value: str
    key: str = ""
    make: Callable[[object], object] = _text
    default: object = None
    instead: str = ""


_PATCH: Final = "a patch of the Deployment in `deploy/deployment.yaml` by kustomize"
_CONTROLLERS: Final = "the node controller is part of the daemon: `nodes.enabled`, see docs/nodes.md"
_WEBHOOK: Final = "the component `deploy/webhook`, see docs/admission.md"

#: Every value of the chart.
VALUES: Final[tuple[HelmValue, ...]] = (
    HelmValue(
        value="schedulerConfig.schedulerName", key="scheduler_names", make=_names, default="slurm-bridge-scheduler"
    ),
    HelmValue(value="schedulerConfig.partition", key="defaults.partition", make=_optional, default="slurm-bridge"),
    HelmValue(value="schedulerConfig.mcsLabel", key="defaults.mcs_label", default="kubernetes"),
    HelmValue(value="schedulerConfig.clientQPS", instead="not needed: calls follow changes, and are not throttled"),
    HelmValue(value="schedulerConfig.clientBurst", instead="not needed: calls follow changes, and are not throttled"),
    HelmValue(value="sharedConfig.slurmRestApi", key="slurm.url", make=_url, default="http://slurm-restapi.slurm:6820"),
    HelmValue(
        value="sharedConfig.slurmJwtSecret",
        instead="the Secret `slurm-bridge-token` with the key `token`, in the namespace of the daemon",
    ),
    HelmValue(value="sharedConfig.slurmJwtSecret.*", instead="the Secret `slurm-bridge-token` with the key `token`"),
    HelmValue(
        value="sharedConfig.deviceProfiles", instead="no devices by claim: pods that request them wait with a reason"
    ),
    HelmValue(value="scheduler.verbosity", key="log.verbosity", make=_number),
    HelmValue(value="scheduler.replicaCount", instead="`replicas` in `deploy/deployment.yaml`, 2 by default"),
    HelmValue(value="scheduler.leaderElect", instead="not needed: `leader_election.enabled` is true by default"),
    HelmValue(value="scheduler.pdb.*", instead="`deploy/pdb.yaml`"),
    HelmValue(value="scheduler.image.*", instead="the image in `deploy/deployment.yaml`"),
    HelmValue(value="scheduler.featureGates.*", instead="not needed: what the API server serves is found at run time"),
    HelmValue(value="scheduler.priorityClassName", instead=_PATCH),
    HelmValue(value="scheduler.resources.*", instead=_PATCH),
    HelmValue(value="scheduler.nodeSelector.*", instead=_PATCH),
    HelmValue(value="scheduler.affinity.*", instead=_PATCH),
    HelmValue(value="scheduler.tolerations", instead=_PATCH),
    HelmValue(value="admission.managedNamespaces", key="managed_namespaces", make=_list, default=["slurm-bridge"]),
    HelmValue(value="admission.managedNamespaceSelector", key="managed_namespace_selector", make=_selector),
    HelmValue(value="admission.*", instead=_WEBHOOK),
    HelmValue(value="controllers.*", instead=_CONTROLLERS),
    HelmValue(value="nameOverride", instead="`namePrefix` of kustomize"),
    HelmValue(value="fullnameOverride", instead="`namePrefix` of kustomize"),
    HelmValue(
        value="namespaceOverride", instead="`namespace` of kustomize, and `leader_election.namespace` in `config.yaml`"
    ),
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """A file for this bridge, and what needs a look: values that no key follows from, and unknown ones."""

    text: str
    warnings: tuple[str, ...]


def translate(text: str, cluster_id: str) -> Translation:
    """The configuration that follows from these values; BadConfiguration where they are no values of a chart."""
    try:
        values = safe_yaml.load(text)
    except safe_yaml.NotYaml as error:
        raise errors.BadConfiguration(f"the values are not YAML: {error}") from None
    if not isinstance(values, Mapping):
        raise errors.BadConfiguration("the values have to hold keys and values, as values.yaml of the chart does")
    chosen, warnings = _chosen(dict(_leaves(values)))
    if str(chosen["slurm.url"]).startswith("http:"):
        warnings["slurm.url"] = "http:// sends the operator's token unencrypted: better is https:// with slurm.ca"
        chosen["slurm.plain_http"] = True
    lines = tuple(f"{about}: {words}" for about, words in warnings.items())
    head = [*(f"# {line}" for line in lines), "profile: slinky", f"cluster_id: {_scalar(cluster_id)}"]
    return Translation(text="\n".join([*head, *_grouped(chosen), ""]), warnings=lines)


def _chosen(given: Mapping[str, object]) -> tuple[dict[str, object], dict[str, str]]:
    """The keys that follow from the values, and what is to be said of the others."""
    chosen = {one.key: one.make(one.default) for one in VALUES if one.default is not None}
    warnings: dict[str, str] = {}
    for path, value in given.items():
        row = _row(path)
        if row is None:
            warnings[path] = "no value of the chart that this version knows"
        elif row.instead and value not in _EMPTY:
            warnings[row.value] = row.instead
        elif row.key and value is not None:
            try:
                chosen[row.key] = row.make(value)
            except _Unusable as wrong:
                warnings[path] = f"{wrong}; the default of the chart is used"
    if chosen.get("managed_namespace_selector"):
        # The chart ignores the names then.
        del chosen["managed_namespaces"]
    return {**chosen, **_OURS}, warnings


def _row(path: str) -> HelmValue | None:
    """The row of exactly this value, else the longest that holds it."""
    exact = next((one for one in VALUES if one.value == path), None)
    wide = (one for one in VALUES if one.value.endswith(".*") and f"{path}.".startswith(one.value[:-1]))
    return exact or max(wide, key=lambda one: len(one.value), default=None)


def _leaves(values: Mapping[Any, Any], way: str = "") -> Iterator[tuple[str, object]]:
    for key, value in values.items():
        path = f"{way}{key}"
        whole = any(one.value == path and one.key for one in VALUES)
        if isinstance(value, Mapping) and value and not whole:
            yield from _leaves(value, f"{path}.")
        else:
            yield (path if path.isprintable() and len(path) <= _LONGEST else ascii(path[:_LONGEST])), value


def _grouped(chosen: Mapping[str, object]) -> Iterator[str]:
    """The keys as lines of YAML, each group once."""
    for key, value in chosen.items():
        if "." not in key:
            yield f"{key}: {_scalar(value)}"
    for group in dict.fromkeys(key.partition(".")[0] for key in chosen if "." in key):
        yield f"{group}:"
        for key, value in chosen.items():
            if key.startswith(f"{group}."):
                yield f"  {key.removeprefix(group + '.')}: {_scalar(value)}{_CHANGE.get(key, '')}"


def _scalar(value: object) -> str:
    """JSON is YAML; plain words need no quotes."""
    return value if isinstance(value, str) and _PLAIN.fullmatch(value) else json.dumps(value)


_LONGEST: Final = 200

#: As the chart has it where nothing is asked for.
_EMPTY: Final[tuple[object, ...]] = (None, "", {}, [])

#: What the chart has no value for, as in deploy/.
_OURS: Final = {
    "slurm.token_file": "/var/run/secrets/slurm/token",
    "defaults.user": "slurm-bridge",
    "defaults.group": "slurm-bridge",
    "leader_election.namespace": "slurm-bridge-system",
}
_CHANGE: Final = {"defaults.user": "  # CHANGE: the owner of placeholders, with a user id of 1000 or higher"}

#: Words that are no truth value and no number, paths and URLs.
_PLAIN: Final = re.compile(
    r"(?!(?:true|false|yes|no|on|off|null|y|n)\Z)(?:[a-z][-a-z0-9]*|/[-a-z/]+|https?://[-a-z0-9.:/]+)"
)
