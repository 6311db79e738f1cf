"""Taints keep pods away, tolerations let them in."""

from typing import Any

import pytest

from slurm_bridge.cluster.rules import taints
from slurm_bridge.model.node import Taint
from slurm_bridge.model.pod import Toleration

GPU = Taint(key="gpu", value="yes", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"key": "gpu", "value": "yes"}, True),
        ({"key": "gpu", "value": "yes", "operator": ""}, True),
        ({"key": "gpu", "value": "no"}, False),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "gpu", "operator": "Sometimes"}, False),
        ({"key": "gpu", "operator": "Gt", "value": "1"}, False),
    ],
)
def test_toleration(toleration: dict[str, Any], tolerated: bool) -> None:
    """Key, value and effect; what is left out means every one."""
    assert taints.tolerates(Toleration(**toleration), GPU) is tolerated


@pytest.mark.parametrize(("operator", "value", "tolerated"), [("Gt", "4", True), ("Gt", "5", False), ("Lt", "6", True)])
def test_numbers(operator: str, value: str, tolerated: bool) -> None:
    """A toleration can name a bound for the taint's number."""
    taint = Taint(key="level", value="5", effect="NoSchedule")
    assert taints.tolerates(Toleration(key="level", operator=operator, value=value), taint) is tolerated


def test_a_wish_keeps_nobody_away() -> None:
    """PreferNoSchedule only ranks nodes."""
    assert taints.untolerated([Taint(key="a", effect="PreferNoSchedule")], ()) is None


def test_the_first_untolerated_taint_is_named() -> None:
    """Taints that are tolerated are passed over."""
    drain = Taint(key="drain", effect="NoExecute")
    assert taints.untolerated([GPU, drain], (Toleration(key="gpu", operator="Exists"),)) == drain
    assert taints.untolerated([GPU, drain], (Toleration(operator="Exists"),)) is None
