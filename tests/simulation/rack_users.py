"""Users with troupes that want to be together: in one rack or hall, or rather so, or wherever they are."""

import dataclasses
import random
from collections.abc import Mapping

from tests.simulation.group_users import Company, House
from tests.simulation.racks import Racks
from tests.simulation.stage import Stage
from tests.simulation.troupes import Troupe

_PREFIX = "kai.scheduler/topology"
REQUIRED, PREFERRED = _PREFIX + "-required-placement", _PREFIX + "-preferred-placement"

#: What users ask for.
_WISHES: tuple[Mapping[str, str], ...] = (
    {},
    {PREFERRED: "rack"},
    {REQUIRED: "rack"},
    {REQUIRED: "rack"},
    {REQUIRED: "hall"},
    {REQUIRED: "hall", PREFERRED: "rack"},
)


class Tenants(Company):
    """Troupes that want to be together."""

    def __init__(self, stage: Stage, house: House, racks: Racks) -> None:
        super().__init__(stage, house)
        self._racks = racks

    def drawn(self, dice: random.Random, name: str) -> Troupe:
        """Any troupe, with its wish."""
        troupe = super().drawn(dice, name)
        wishes = dice.choice(_WISHES)
        self._racks.require(name, wishes.get(REQUIRED, ""))
        others = {key: value for key, value in troupe.words.items() if not key.startswith(_PREFIX)}
        return dataclasses.replace(troupe, words={**others, **wishes})
