"""All families of hooks as the benchmarks configure them, in their order."""

from collections.abc import Mapping, Sequence
from typing import Any

#: Any number is ahead, as without queues: what is measured is the way of a pod, and not how queues throttle.
_QUEUES = {
    "name": "root",
    "submitacl": "*",
    "queues": [{"name": "default", "resources": {"max": {"vcore": "1000000"}}}],
}
_FIXED = {"name": "fixed", "value": "root.default"}
EVERY_HOOK: Sequence[Mapping[str, Any]] = (
    {
        "name": "yunikorn",
        "options": {
            "order": False,
            "ahead": 0,
            "configuration": {"partitions": [{"name": "default", "placementrules": [_FIXED], "queues": [_QUEUES]}]},
        },
    },
    {"name": "kai", "options": {"topologies": [{"name": "zones", "levels": ["topology.kubernetes.io/zone"]}]}},
    {"name": "vela"},
    {"name": "kube-scheduler", "options": {"tiers": 1}},
)
