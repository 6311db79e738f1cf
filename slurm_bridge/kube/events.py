"""How a note to the user is written as an Event of events.k8s.io/v1."""

import datetime as dt

from slurm_bridge import ports
from slurm_bridge.model import texts
from slurm_bridge.model.meta import Manifest

CONTROLLER = "slurm-bridge"

#: The API refuses longer notes; the end of a message says least.
MOST_NOTE = 1024

#: generateName adds five characters, and object names end at 253.
_MOST_NAME = 240


def namespace(note: ports.Note) -> str:
    """Events about cluster-wide objects live where kubectl looks for them."""
    return note.namespace or "default"


def manifest(note: ports.Note, *, wall: float, instance: str) -> Manifest:
    """The Event to create; the server chooses the end of its name."""
    message = texts.plain(note.message[: MOST_NOTE + 1])
    data = message.encode()
    if len(data) > MOST_NOTE:
        # Cut between characters.
        message = data[: MOST_NOTE - 3].decode(errors="ignore") + "…"
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"generateName": f"{note.name[:_MOST_NAME]}-", "namespace": namespace(note)},
        "eventTime": dt.datetime.fromtimestamp(wall, tz=dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": CONTROLLER,
        "reportingInstance": instance,
        "action": note.action,
        "reason": note.reason,
        "type": "Warning" if note.warning else "Normal",
        "note": message,
        "regarding": {
            "apiVersion": note.api_version,
            "kind": note.kind,
            "namespace": note.namespace,
            "name": note.name,
            "uid": note.uid,
        },
    }
