"""What packages add: filters, scores, sort plugins and sampling plugins, and what is told of those that are wrong."""

import importlib
import pathlib
import re
import sys
import tomllib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pydantic
import pytest
import yaml

from slurm_bridge import errors
from slurm_bridge.families.vela import extensions
from slurm_bridge.families.vela.options import PipelineOptions, VelaOptions
from slurm_bridge.families.vela.pipeline import Agent, PipelineFailed
from slurm_bridge.families.vela.samples import SamplingRequest
from slurm_bridge.families.vela.scene import SamplingScene
from slurm_bridge.hooks import registry
from slurm_bridge.hooks.registry import HookConfig
from slurm_bridge.hooks.services import ChainServices
from slurm_bridge.runtime import packages
from slurm_bridge.runtime.clock import VirtualClock
from tests.unit.families.vela.support_vela import limited
from tests.unit.families.vela.vela_bench import Bench
from tests.unit.hooks.builders import cluster, node, workload

SITE = '''
import numpy as np
import pydantic

from slurm_bridge.families.vela.smart import Merged


class Power:
    """Nodes of racks with enough power."""

    class Options(pydantic.BaseModel, extra="forbid"):
        least: int = 5

    rejects = "are in a rack without power"

    def __init__(self, options):
        self._least = options.least

    def fits(self, scene, rows):
        power = scene.nodes.label("power")
        return np.array([int(power.values[code] or 0) >= self._least for code in power.codes[rows]], bool)


class Cool:
    def score(self, scene, rows):
        return np.array([100 if name == "n2" else 0 for name in scene.nodes.names[rows]])


class ByAge:
    def key(self, priority, created):
        return (created,)


class Mine:
    share, near = 1.0, True

    def __init__(self, options, services):
        self.options = options

    def sample(self, request):
        one = np.array([1])
        return Merged(sizes={"mine": 1}, nodes=["n1"], uids=[""], accumulated=one, plugins=one, failed={})

    def close(self):
        pass


class Deaf:
    def fits(self, scene):
        return True


class Mute:
    def fits(self, scene, rows):
        return np.ones(len(rows), bool)


class Short:
    rejects = "x"

    def fits(self, scene, rows):
        return [True]


class Loud:
    def score(self, scene, rows):
        return np.full(len(rows), 101)


def broken():
    raise RuntimeError("no licence")


class Sleepless:
    def __init__(self, options, services):
        pass

    def sample(self, request):
        return None
'''

POINTS = """
[slurm_bridge.vela_plugins]
Power = vela_site:Power
Cool = vela_site:Cool
Deaf = vela_site:Deaf
Mute = vela_site:Mute
Short = vela_site:Short
Loud = vela_site:Loud
Broken = vela_site:broken
Gone = vela_site:gone
[slurm_bridge.vela_sorts]
ByAge = vela_site:ByAge
Unsorted = vela_site:Cool
[slurm_bridge.vela_samplers]
Mine = vela_site:Mine
Sleepless = vela_site:Sleepless
"""


@pytest.fixture(autouse=True)
def site(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package, as pip leaves it."""
    info = tmp_path / "vela_site-1.0.dist-info"
    info.mkdir()
    (tmp_path / "vela_site.py").write_text(SITE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vela-site\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    packages.offered.cache_clear()
    importlib.invalidate_caches()
    yield
    sys.modules.pop("vela_site", None)
    packages.offered.cache_clear()


def powered() -> list[Any]:
    """Three nodes, of which two are in racks with enough power."""
    return [node(f"n{place}", labels={"power": str(place * 5)}) for place in range(3)]


def test_filters_and_scores_of_a_site_are_used_like_those_that_ship():
    """In samples and in the decision, with arguments and weights."""
    chosen = {"filters": ["NodeRules", "Power"], "scores": [{"name": "Cool", "weight": 2}]}
    bench = Bench(cluster(powered()), nodes_bp=10_000, sampling=chosen, decision=chosen)
    plan = bench.planned()
    assert [sorted(one.nodes or ()) for one in plan.course.attempts[:2]] == [["n2"], ["n1"]]
    high = [{"name": "Power", "args": {"least": 50}}]
    wait = Bench(cluster(powered()), sampling={"filters": high}, decision={"filters": high}).waits()
    assert "of 3 nodes here 3 are in a rack without power" in wait.message


def test_a_sort_plugin_of_a_site_orders():
    """The queue, and the submissions."""
    bench = Bench(cluster(powered()), sort="ByAge")
    assert bench.chain.order_key(workload(limited()))[1].key == (workload(limited()).created,)


def test_a_sampling_plugin_of_a_site_samples():
    """It is given the options and the services of the hook."""
    bench = Bench(cluster(powered()), sample_nodes="Mine")
    assert bench.allowed(bench.planned()) == {"n1"}
    bench.chain.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sampling": {"filters": ["Deaf"]}}, r"plugin Deaf: fits must take 2 arguments"),
        ({"sampling": {"filters": ["Mute"]}}, r"plugin Mute: has no attribute rejects"),
        ({"sampling": {"filters": ["Cool"]}}, r"plugin Cool: has no method fits"),
        ({"decision": {"scores": ["Power"]}}, r"plugin Power: has no method score"),
        ({"decision": {"scores": ["Broken"]}}, r"plugin Broken: cannot be built: RuntimeError: no licence"),
        ({"decision": {"filters": ["Gone"]}}, r"plugin Gone: cannot be loaded: AttributeError"),
        ({"decision": {"filters": ["Never"]}}, r"plugin Never: is not one that filters; these are .*Power"),
        ({"sampling": {"filters": [{"name": "Power", "args": {"most": 1}}]}}, r"most"),
        ({"sort": "Unsorted"}, r"sort plugin Unsorted: has no method key"),
        ({"sort": "Never"}, r"sort plugin 'Never' is not known; there are PrioritySort, AgeSort, ByAge"),
        ({"sample_nodes": "Never"}, r"'Never' is not known; there are .*Mine"),
    ],
)
def test_what_is_wrong_with_one_is_told_with_its_name(options: dict[str, Any], message: str):
    """When the configuration is read."""
    with pytest.raises(pydantic.ValidationError, match=message):
        VelaOptions.model_validate(options)


def test_a_sampling_plugin_without_all_it_needs_is_named():
    """When the chain is built, for it is given the services then."""
    one = HookConfig(name="vela", options={"sample_nodes": "Sleepless"})
    with pytest.raises(errors.BadConfiguration, match="sample_nodes Sleepless: has no attribute share"):
        registry.build([one], ChainServices(clock=VirtualClock()))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"filters": ["Short"]}, "plugin Short: fits has to answer one truth value for each of 3 nodes"),
        ({"scores": ["Loud"]}, "plugin Loud: score has to answer a number from 0 to 100 for each of 3 nodes"),
    ],
)
def test_an_answer_that_is_none_is_told_with_the_name_of_the_plugin(options: dict[str, Any], message: str):
    """It costs the pod a try."""
    assert message in Bench(cluster(powered()), nodes_bp=10_000, decision=options).waits().message


def test_what_ships_cannot_be_replaced():
    """An entry point of the same name is not looked at."""
    assert extensions.names(extensions.PLUGINS, ["Power"])[0] == "Power"
    assert extensions.find("plugin", extensions.PLUGINS, "Power", {"Power": 1}) == 1


def test_the_example_of_the_page_works():
    """Its filter leaves out nodes in dark halls, and its score prefers those with the lowest price."""
    page = (pathlib.Path(__file__).resolve().parents[4] / "docs" / "vela.md").read_text()
    code, points, configured = (
        re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)[-1] for language in ("python", "toml", "yaml")
    )
    scope: dict[str, Any] = {}
    exec(compile(code, "vela.md", "exec"), scope)  # noqa: S102 - the page's own example
    groups = tomllib.loads(points)["project"]["entry-points"]
    made = {name: scope[target.partition(":")[2]] for name, target in groups[extensions.PLUGINS].items()}
    options = yaml.safe_load(configured)["hooks"][0]["options"]["decision"]
    hall, args = options["filters"][-1]["name"], options["filters"][-1]["args"]
    price = options["scores"][-1]["name"]
    labels: list[dict[str, str]] = [{"hall": "a", "price": "20"}, {"hall": "b"}, {"hall": "a"}]
    seen = cluster([node(f"n{place}", labels=one) for place, one in enumerate(labels)])
    scene = SamplingScene(limited(), seen.columns, 0.0)
    rows = np.flatnonzero(seen.columns.present)
    filter_ = made[hall](made[hall].Options.model_validate(args))
    assert seen.columns.names[rows[filter_.fits(scene, rows)]].tolist() == ["n0", "n2"]
    assert made[price]().score(scene, rows).tolist() == [80, 0, 0]


def test_without_an_order_of_its_own_the_hook_leaves_the_phase_to_another():
    """As beside the queues, which order by themselves."""
    queues = {"partitions": [{"name": "default", "queues": [{"name": "root", "submitacl": "*"}]}]}
    yunikorn = HookConfig(name="yunikorn", options={"configuration": queues})
    around = ChainServices(clock=VirtualClock())
    registry.build([yunikorn, HookConfig(name="vela", options={"emit": "none"})], around).close()
    with pytest.raises(errors.BadConfiguration, match="only one hook can have the phase order"):
        registry.build([yunikorn, HookConfig(name="vela")], around)


@pytest.mark.parametrize("plugins", [{"filters": ["Short"]}, {"filters": [], "scores": ["Loud"]}])
def test_a_plugin_that_fails_is_the_failure_of_the_agent(plugins: dict[str, Any]) -> None:
    """Whether it filters or scores; the pipeline is idle again."""
    options = PipelineOptions.model_validate({**plugins, "parallel_sampling_pipelines": 1})
    seen = cluster([node("n1"), node("n2")])
    agent = Agent("east", lambda: seen, clock=VirtualClock(), options=options)
    for _ in range(2):
        with pytest.raises(PipelineFailed, match="Error: "):
            agent.sample(SamplingRequest(pod=limited(), nodes_bp=10_000), "random")
