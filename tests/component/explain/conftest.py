"""A pocket cluster, and explainers as the command line composes them."""

import pathlib
from collections.abc import Callable, Iterator

import pytest

from slurm_bridge import app
from slurm_bridge.demo import pocket
from slurm_bridge.explain.explainer import Explainer
from slurm_bridge.explain.explanation import Explanation
from slurm_bridge.settings import loader
from slurm_bridge.settings.model import Settings

CONFIG = "cluster_id: east\ndefaults: {user: slurm-bridge, group: slurm-bridge}\n"


@pytest.fixture(scope="module")
def world() -> Iterator[pocket.PocketWorld]:
    """Ten nodes, of every kind that there is, on both sides."""
    with pocket.world(nodes=10) as made:
        yield made


@pytest.fixture
def settings(world: pocket.PocketWorld, tmp_path: pathlib.Path) -> Callable[..., Settings]:
    """The settings of a daemon of this world; words are further `--set` values."""

    def made(*overrides: str) -> Settings:
        path = tmp_path / "config.yaml"
        path.write_text(CONFIG)
        return loader.load(path, {}, (*world.overrides, *overrides))

    return made


Explain = Callable[..., Explanation]


@pytest.fixture
def explain(settings: Callable[..., Settings]) -> Explain:
    """One manifest against the pocket cluster, or offline; words are further `--set` values."""

    def made(manifest: dict[str, object], *overrides: str, offline: bool = False) -> Explanation:
        with app.explainer(settings(*overrides), offline=offline) as explainer:
            return explainer.manifests([manifest])[0]

    return made


@pytest.fixture
def explainer(settings: Callable[..., Settings]) -> Iterator[Explainer]:
    """Against the pocket cluster."""
    with app.explainer(settings(), offline=False) as made:
        yield made
