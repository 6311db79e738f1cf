"""A hook of a site: the package in examples/custom-hook, installed beside the daemon, holds pods and lets them go."""

import copy
import datetime as dt
import pathlib
import shutil
import sys
from typing import Any

import pytest

from localcluster.config import PROJECT
from tests.e2e import support_servers, support_world
from tests.e2e.support_fixtures import OpenWorld

WEEK = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder with the package as pip installs it; a copy is built, because a build leaves traces in the sources."""
    folder = tmp_path_factory.mktemp("hook")
    shutil.copytree(PROJECT / "examples" / "custom-hook", folder / "source")
    options = ("--quiet", "--no-deps", "--no-index", "--no-build-isolation", f"--target={folder / 'site'}")
    support_servers.said(sys.executable, "-m", "pip", "install", *options, folder / "source")
    return folder / "site"


def hooks(days: list[str]) -> list[dict[str, Any]]:
    """The chain with the site's hook at its end, whose office is open on these days."""
    options = {"opens": "00:00", "closes": "23:59:59", "days": days}
    return [{"name": "policy"}, {"name": "eligibility"}, {"name": "office-hours", "options": options}]


@pytest.mark.real
def test_an_installed_hook_holds_pods_and_lets_them_go(open_world: OpenWorld, installed: pathlib.Path) -> None:
    """While the office is closed the pod says when it opens and Slurm hears nothing; the new hours need no restart."""
    in_three_days = WEEK[(dt.datetime.now(dt.UTC).weekday() + 3) % len(WEEK)]
    world = open_world("hook", hooks=hooks([in_three_days]), variables={"PYTHONPATH": str(installed)})
    (pod,) = world.create(support_world.pod("late", world.daemon.scheduler, annotations=support_world.FOREVER))
    held = world.await_pod("late", "word of the hook", support_world.waits_for("OutsideOfficeHours"))
    assert "the office opens on" in support_servers.condition(held, "PodScheduled")["message"]
    assert world.placeholders(pod["metadata"]["uid"]) == []
    chosen = copy.deepcopy(world.daemon.settings)
    world.daemon.configure({**chosen, "hooks": hooks(WEEK)})
    world.await_pod("late", "a node", support_world.is_bound)
