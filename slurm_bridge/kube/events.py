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
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"generateName": f"{note.name[:_MOST_NAME]}-", "namespace": namespace(note)},
        "eventTime": _micro_time(wall),
        "reportingController": CONTROLLER,
        "reportingInstance": instance,
        "action": note.action,
        "reason": note.reason,
        "type": "Warning" if note.warning else "Normal",
        "note": _shortened(note.message),
        "regarding": {
            "apiVersion": note.api_version,
            "kind": note.kind,
            "namespace": note.namespace,
            "name": note.name,
            "uid": note.uid,
        },
    }


def _shortened(message: str) -> str:
    """At most so many bytes of UTF-8, cut between characters."""
    message = texts.plain(message[: MOST_NOTE + 1])
    data = message.encode()
    return message if len(data) <= MOST_NOTE else data[: MOST_NOTE - 3].decode(errors="ignore") + "…"


def _micro_time(wall: float) -> str:
    moment = dt.datetime.fromtimestamp(wall, tz=dt.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
