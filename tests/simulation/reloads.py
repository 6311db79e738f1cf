"""Operators who change their minds about hooks while everything runs."""

from tests.simulation import families
from tests.simulation.daemon import Site
from tests.simulation.play import Act, Play


class Reloads:
    """They write the file; each daemon reads it when it looks at it next."""

    def __init__(self, play: Play, site: Site) -> None:
        self._world, self._dice, self._site = play.world, play.world.dice, site
        self.acts: tuple[tuple[int, Act], ...] = ((3, self.switch), (1, self.dream))

    def switch(self) -> None:
        """Other families, or none."""
        self._write(families=self._dice.choice(((), *families.CHOICES)))

    def dream(self) -> None:
        """With the hook that takes its time, or without, beside other families."""
        self._write(dreaming=not self._site.variant.dreaming, families=self._dice.choice(((), *families.CHOICES)))

    def end(self) -> None:
        """Whatever is configured is right."""

    def _write(self, **changes: object) -> None:
        self._world.weather.note(f"operator configures {changes}")
        self._site.write(**changes)
        self._world.updates.configured()
