"""The values of the Helm chart: values.yaml, values.schema.json and the table in docs/helm.md are made of these rows.

What the daemon's configuration may hold follows from its settings, and what pods request from the kustomize files.
"""

import dataclasses
import json
import pathlib
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from slurm_bridge.settings.model import Settings

Json = dict[str, Any]

DEPLOY: Final = pathlib.Path(__file__).resolve().parents[1] / "deploy"

_WIDTH: Final = 118
_LINK: Final = re.compile(r"\[([^]]+)\]\(([^)#]+)[^)]*\)")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One value: its path, what it may be as JSON schema, its default, and its line in the reference."""

    path: str
    schema: Json
    default: Any
    meaning: str


def _requested(file: str) -> Json:
    """What the container of a manifest requests."""
    manifest = list(yaml.safe_load_all((DEPLOY / file).read_text()))[-1]
    found: Json = manifest["spec"]["template"]["spec"]["containers"][0]["resources"]
    return found


def _text(**more: Any) -> Json:
    return {"type": "string", **more}


def _count(minimum: int) -> Json:
    return {"type": "integer", "minimum": minimum}


_SWITCH: Final[Json] = {"type": "boolean"}
_OBJECT: Final[Json] = {"type": "object"}
_TEXTS: Final[Json] = {"type": "object", "additionalProperties": {"type": "string"}}
_OBJECTS: Final[Json] = {"type": "array", "items": {"type": "object"}}
_NAME: Final = _text(pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$", maxLength=253)
_SHORT_NAME: Final = _text(pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$", maxLength=40)
_SHARD: Final[Json] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "name": _SHORT_NAME,
        "replicas": _count(0),
        "zone": _text(minLength=1),
        "selector": _text(minLength=1),
    },
    "oneOf": [{"required": ["zone"]}, {"required": ["selector"]}],
}


def _pods(path: str, default_of: str) -> tuple[Value, ...]:
    """Where pods run, and what they request."""
    return (
        Value(path=f"{path}resources", schema=_OBJECT, default=_requested(default_of), meaning="Requests and limits."),
        Value(path=f"{path}priorityClassName", schema=_NAME, default="", meaning="The priority class of the pods."),
        Value(path=f"{path}nodeSelector", schema=_TEXTS, default={}, meaning="Labels of the nodes for the pods."),
        Value(path=f"{path}tolerations", schema=_OBJECTS, default=[], meaning="Taints that the pods tolerate."),
        Value(
            path=f"{path}affinity",
            schema=_OBJECT,
            default={},
            meaning="Affinity of the pods. Empty: replicas prefer different nodes.",
        ),
        Value(
            path=f"{path}topologySpreadConstraints",
            schema=_OBJECTS,
            default=[],
            meaning="Topology spread constraints. One without `labelSelector` gets the one of the pods.",
        ),
    )


def _tls(path: str, of: str, secret: str) -> tuple[Value, ...]:
    """Where the certificate of a Service comes from."""
    return (
        Value(
            path=f"{path}.mode",
            schema={"enum": ["selfSigned", "certManager", "secret"]},
            default="selfSigned",
            meaning=f"Where the certificate of {of} comes from. `selfSigned`: the chart makes one for ten years, and "
            "upgrades keep it. `certManager`: a Certificate of cert-manager. `secret`: a Secret that exists.",
        ),
        Value(
            path=f"{path}.secretName",
            schema=_NAME,
            default="",
            meaning=f"The Secret with `tls.crt`, `tls.key` and `ca.crt`. Empty: the chart's name with `{secret}`.",
        ),
        Value(
            path=f"{path}.issuerRef",
            schema=_TEXTS,
            default={},
            meaning="With `certManager`: the issuer, with `name` and `kind`. Empty: an Issuer of the chart that signs "
            "the certificate with itself.",
        ),
    )


#: In the order of values.yaml. Those of `config` are in deploy/config.yaml.
VALUES: Final[tuple[Value, ...]] = (
    Value(path="nameOverride", schema=_SHORT_NAME, default="", meaning="In place of the chart's name in names."),
    Value(
        path="fullnameOverride",
        schema=_SHORT_NAME,
        default="",
        meaning="The name of the objects. Empty: the name of the release, with the chart's name unless it has it.",
    ),
    Value(
        path="image.repository",
        schema=_text(pattern=r"^[-._:/@a-zA-Z0-9]+$"),
        default="slurm-bridge",
        meaning="The image that you built with `deploy/Dockerfile`, without its tag.",
    ),
    Value(
        path="image.tag",
        schema=_text(pattern=r"^[-._a-zA-Z0-9]*$"),
        default="",
        meaning="Its tag. Empty: the version of the chart's app.",
    ),
    Value(
        path="image.pullPolicy",
        schema={"enum": ["Always", "IfNotPresent", "Never"]},
        default="IfNotPresent",
        meaning="When the image is pulled.",
    ),
    Value(
        path="imagePullSecrets",
        schema=_OBJECTS,
        default=[],
        meaning="Secrets for the registry, each with `name`.",
    ),
    Value(
        path="config",
        schema={},
        default=None,
        meaning="The configuration of the daemon: the keys of [the configuration](configuration.md). Rights follow "
        "from it. `admission.accounts` and `leader_election` are set for the release where you leave them out.",
    ),
    Value(
        path="slurmToken.secretName",
        schema=_NAME,
        default="",
        meaning="The Secret with the token of a Slurm operator. It has to exist. Empty: the chart's name with "
        "`-token`.",
    ),
    Value(
        path="slurmToken.key",
        schema=_text(pattern=r"^[-._a-zA-Z0-9]+$"),
        default="token",
        meaning="The key of the token in the Secret: `auth-token` in a Secret that slurm-operator has written for a "
        "Token.",
    ),
    Value(path="replicas", schema=_count(0), default=2, meaning="Replicas of the daemon: one leads, the others wait."),
    *_pods("", "deployment.yaml"),
    Value(path="podAnnotations", schema=_TEXTS, default={}, meaning="Further annotations of the daemon's pods."),
    Value(path="podLabels", schema=_TEXTS, default={}, meaning="Further labels of the daemon's pods."),
    Value(
        path="extraEnv",
        schema=_OBJECTS,
        default=[],
        meaning="Further environment variables of the daemon. `SLURM_BRIDGE__…` wins over `config`.",
    ),
    Value(path="extraVolumes", schema=_OBJECTS, default=[], meaning="Further volumes of the daemon's pods."),
    Value(
        path="hostAliases",
        schema=_OBJECTS,
        default=[],
        meaning="Addresses of names that no name server of the cluster has, for example that of slurmrestd.",
    ),
    Value(path="extraVolumeMounts", schema=_OBJECTS, default=[], meaning="Where the daemon mounts them."),
    Value(
        path="restartOnConfigChange",
        schema=_SWITCH,
        default=False,
        meaning="Whether a changed `config` replaces the pods. Without it the daemon reloads the keys that "
        "docs/configuration.md marks as reloaded; the other keys take effect at the next restart.",
    ),
    Value(
        path="podDisruptionBudget.enabled",
        schema=_SWITCH,
        default=True,
        meaning="Whether disruption budgets let nodes be drained one replica at a time.",
    ),
    Value(
        path="podDisruptionBudget.maxUnavailable",
        schema={"type": ["integer", "string"]},
        default=1,
        meaning="How many replicas may be evicted at the same time.",
    ),
    Value(
        path="networkPolicy.enabled",
        schema=_SWITCH,
        default=True,
        meaning="Whether NetworkPolicies limit connections to the pods.",
    ),
    Value(
        path="networkPolicy.metricsNamespace",
        schema=_text(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", maxLength=63),
        default="monitoring",
        meaning="The namespace from which metrics are scraped.",
    ),
    Value(
        path="rbac.extraRules",
        schema=_OBJECTS,
        default=[],
        meaning="Further rules for the daemon's ClusterRole, for what hooks of your own read.",
    ),
    Value(
        path="admissionPolicies.enabled",
        schema=_SWITCH,
        default=False,
        meaning="Whether [admission policies](security.md#admission-policies) limit what the daemon's account may "
        "change, and which labels and annotations users may set. They need Kubernetes 1.30.",
    ),
    Value(
        path="webhook.enabled",
        schema=_SWITCH,
        default=False,
        meaning="Whether the [admission webhook](admission.md) runs. The managed namespaces and the scheduler names "
        "are those of `config`.",
    ),
    Value(path="webhook.replicas", schema=_count(0), default=2, meaning="Replicas of the webhook."),
    Value(
        path="webhook.failurePolicy",
        schema={"enum": ["Fail", "Ignore"]},
        default="Fail",
        meaning="What happens to objects of the bridge while no replica answers: `Fail` refuses them.",
    ),
    Value(
        path="webhook.timeoutSeconds",
        schema={"type": "integer", "minimum": 1, "maximum": 30},
        default=5,
        meaning="How long the API server waits for an answer.",
    ),
    *_tls("webhook.tls", "the webhook", "-webhook"),
    Value(
        path="webhook.tls.caBundle",
        schema=_text(pattern=r"^[A-Za-z0-9+/=]*$"),
        default="",
        meaning="With `secret`: the certificate authority, as PEM in base64.",
    ),
    *_pods("webhook.", "webhook/deployment.yaml"),
    *_tls("web.tls", "the API of `config.web.submission` and `config.web.administration`", "-web"),
    Value(
        path="agents.shards",
        schema={"type": "array", "items": _SHARD},
        default=[],
        meaning="[Agents](agents.md) for the hook `vela`, each with `zone` or `selector` (its nodes), and optionally "
        "`name` (the end of its name) and `replicas` (1 by default). The daemon finds their token in "
        "`/var/run/secrets/agent/token` and their certificate authority in `/var/run/secrets/agent-tls/ca.crt`.",
    ),
    Value(
        path="agents.tokenSecretName",
        schema=_NAME,
        default="",
        meaning="The Secret with the key `token` that the daemon and its agents share. It has to exist. Empty: the "
        "chart's name with `-agent-token`.",
    ),
    *_tls("agents.tls", "the agents", "-agent-tls"),
    *_pods("agents.", "agents/agent.yaml"),
    Value(
        path="serviceMonitor.enabled",
        schema=_SWITCH,
        default=False,
        meaning="Whether a ServiceMonitor of the Prometheus operator scrapes the metrics of every replica.",
    ),
    Value(path="serviceMonitor.labels", schema=_TEXTS, default={}, meaning="Labels by which Prometheus selects it."),
    Value(
        path="serviceMonitor.interval",
        schema=_text(pattern=r"^[0-9]+(ms|s|m)$"),
        default="30s",
        meaning="How often metrics are scraped.",
    ),
    Value(
        path="monitoring.rules",
        schema=_SWITCH,
        default=False,
        meaning="Whether a PrometheusRule of the Prometheus operator has the [alerts](monitoring.md#alerts). They tell "
        "releases apart by the label `job`: one release with it is enough for a Prometheus.",
    ),
    Value(
        path="monitoring.labels",
        schema=_TEXTS,
        default={},
        meaning="Labels by which Prometheus selects the PrometheusRule.",
    ),
    Value(
        path="monitoring.docs",
        schema=_text(pattern=r"^[-._~:/@%a-zA-Z0-9]+$"),
        default="docs",
        meaning="Where your operators read these pages: the alerts link to `monitoring.md` there.",
    ),
    Value(
        path="monitoring.dashboard",
        schema=_SWITCH,
        default=False,
        meaning="Whether a ConfigMap with the label `grafana_dashboard` has the [board](monitoring.md#the-board).",
    ),
)


#: What the comments say of the kustomize files, and here of values; the Lease is named after the release.
_SAID_HERE: Final = (
    ("leader_election:\n  namespace: slurm-bridge-system\n  name: slurm-bridge\n\n", ""),
    (" It needs the component\n# deploy/nodes: docs/nodes.md.", " See\n# docs/nodes.md."),
    ("With the admission webhook (deploy/webhook):", "With the admission webhook (webhook.enabled):"),
    ("From the Secret slurm-bridge-token;", "From the Secret slurmToken.secretName;"),
    ("# CHANGE: remove this key with https://. With http://", "# CHANGE: false with https://. With http://"),
)


def configuration() -> str:
    """The shipped configuration with its comments."""
    text: str = yaml.safe_load((DEPLOY / "config.yaml").read_text())["data"]["config.yaml"]
    for shipped, here in _SAID_HERE:
        if shipped not in text:
            raise ValueError(f"deploy/config.yaml has changed: hack/chart_values.py looks for {shipped!r} there")
        text = text.replace(shipped, here)
    return text


def document() -> str:
    """The text of values.yaml."""
    return f"{_HEAD}{''.join(_lines(_tree(), ''))}"


def schema() -> str:
    """The text of values.schema.json."""
    found = {"$schema": "http://json-schema.org/draft-07/schema#", **_schema(_tree()), "$defs": _configured_parts()}
    # Helm gives both to the values of a chart.
    found["properties"] |= {"global": {"type": "object"}}
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


def table() -> str:
    """The rows of docs/helm.md."""
    rows = [f"| `{row.path}` | {_shown(row)} | {row.meaning} |" for row in VALUES]
    return "\n".join(["| value | default | meaning |", "|---|---|---|", *rows]) + "\n"


def _shown(row: Value) -> str:
    if row.default is None:
        return "as in `deploy/config.yaml`"
    return f"`{json.dumps(row.default)}`"


def _tree() -> Json:
    """The rows, grouped by the parts of their paths."""
    root: Json = {}
    for row in VALUES:
        *groups, last = row.path.split(".")
        inner = root
        for group in groups:
            inner = inner.setdefault(group, {})
        inner[last] = row
    return root


def _lines(tree: Mapping[str, Any], indent: str) -> Iterator[str]:
    for key, found in tree.items():
        if isinstance(found, Value):
            meaning = _LINK.sub(r"\1 (docs/\2)", found.meaning)
            about = textwrap.wrap(meaning, _WIDTH - len(indent) - 2, break_on_hyphens=False)
            yield "".join(f"{indent}# {line}\n" for line in about)
            yield f"{indent}{key}:{_default(found, indent)}\n"
        else:
            yield f"{indent}{key}:\n"
            yield from _lines(found, f"{indent}  ")
        yield "" if indent else "\n"


def _default(row: Value, indent: str) -> str:
    if row.default is None:
        return "\n" + textwrap.indent(configuration().rstrip("\n"), f"{indent}  ")
    if isinstance(row.default, Mapping) and row.default:
        return "\n" + textwrap.indent(yaml.safe_dump(row.default, sort_keys=False).rstrip("\n"), f"{indent}  ")
    plain = isinstance(row.default, str) and row.default
    return f" {row.default if plain else json.dumps(row.default)}"


def _schema(tree: Mapping[str, Any]) -> Json:
    properties = {key: _property(found) for key, found in tree.items()}
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _property(found: Any) -> Json:
    if not isinstance(found, Value):
        return _schema(found)
    if found.default is None:
        return {"description": found.meaning, **_configured(Settings.model_json_schema())}
    return {"description": found.meaning, **found.schema, "default": found.default}


def _configured_parts() -> Json:
    parts = Settings.model_json_schema()["$defs"]
    return {name: _configured(part) for name, part in sorted(parts.items())}


def _configured(part: Any) -> Any:
    """As the daemon reads it: where it takes a text it takes a number, too."""
    if isinstance(part, list):
        return [_configured(one) for one in part]
    if not isinstance(part, dict):
        return part
    # A key of the configuration may be named like a word of schemas: then its value is a table.
    needless = {key for key in ("title", "format", "reloadable") if not isinstance(part.get(key), dict)}
    found = {key: _configured(one) for key, one in part.items() if key not in {"$defs", *needless}}
    if found.get("type") == "string" and "enum" not in found and "const" not in found:
        found["type"] = ["string", "number"]
    return found


_HEAD: Final = """\
# Values of the chart slurm-bridge, made by `make docs`. Keys below `config` are those of deploy/config.yaml, and
# docs/helm.md describes the others. values.schema.json refuses unknown keys, also those below `config`.

"""
