"""Which part a namespace belongs to, in words, where several daemons share the cluster."""

from collections.abc import Mapping

from slurm_bridge import errors, ports
from slurm_bridge.model import kinds, names, texts
from slurm_bridge.model.lease import Lease
from slurm_bridge.model.parts import ClusterParts


def note(given: ClusterParts, namespace: str, cluster: ports.Cluster | None) -> str:
    """Without a cluster, the namespace may have a label that says something else."""
    labels, unread = _labels(cluster, namespace)
    part = given.of(namespace, labels)
    strange = given.strange(labels)
    named = bool(labels.get(names.LABEL_PART)) and not strange
    by = f"label {names.LABEL_PART}" if named else f"its name, among {', '.join(given.every)}"
    said = f"namespace {namespace} belongs to part {part} (by {by})"
    if unread:
        said += f"; {unread}"
    if strange:
        said += f"; its label {names.LABEL_PART}={texts.shown(strange)} names none of these"
    if part != given.own:
        said += f"; this configuration is of part {given.own}, whose daemon leaves its pods alone"
    holder = _holder(given, namespace, cluster)
    return said + (f"; part {holder} still has it" if holder not in ("", part) else "")


def _labels(cluster: ports.Cluster | None, namespace: str) -> tuple[Mapping[str, str], str]:
    if cluster is None:
        return {}, f"offline: without the label {names.LABEL_PART}"
    try:
        found = cluster.get(kinds.NAMESPACES, "", namespace)
    except errors.BridgeError as problem:
        return {}, f"its labels could not be read: {problem}"
    return (found.metadata.labels if found is not None else {}), ""


def _holder(given: ClusterParts, namespace: str, cluster: ports.Cluster | None) -> str:
    """By its record; users may not be allowed to read it, and it is no more than an explanation of a delay."""
    try:
        record: Lease | None = cluster.lease(given.lease_namespace, given.record(namespace)) if cluster else None
    except errors.BridgeError:
        record = None
    return (record.spec.holder_identity or "") if record is not None else ""
