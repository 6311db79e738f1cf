"""What is a group is a site's choice where the objects do not say."""

import pytest

from slurm_bridge.model import names
from tests.e2e import support_groups, support_kinds
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_kinds import Objects
from tests.e2e.support_world import World

NO_GANG = {names.JOB_PREFIX + "gang": "false"}


@pytest.fixture(scope="module")
def world(open_world: OpenWorld) -> World:
    """A site that places every Job as a whole, and JobSets by their parts."""
    return open_world("chosen", workloads={"job": "gang", "jobset": "replicatedjob"})


@pytest.mark.real
def test_a_job_is_a_group_where_the_site_says_so(world: World) -> None:
    """Unless its user says otherwise."""
    objects, pods = Objects(world), support_kinds.template(world)
    objects.create("Job", "whole", support_kinds.job_spec(pods, 3))
    objects.create("Job", "single", support_kinds.job_spec(pods, 3), NO_GANG)
    support_groups.together(world, support_groups.placed(world, "whole", 3))
    assert len(support_groups.apart(world, support_groups.placed(world, "single", 3))) == 3


@pytest.mark.real
def test_a_jobset_is_placed_by_parts_where_the_site_says_so(world: World) -> None:
    """One job for each part, with all replicas of it; a user may want its pods singly."""
    objects = Objects(world)
    one, two = (support_kinds.job_spec(support_kinds.template(world), count) for count in (1, 2))
    spec = support_kinds.job_set_spec({"driver": one, "workers": two})
    spec["replicatedJobs"][1]["replicas"] = 2
    objects.create("JobSet", "parts", spec)
    objects.create("JobSet", "loose", spec, NO_GANG)
    pods = support_groups.placed(world, "parts", 5)
    jobs = support_groups.by_job(world, pods)
    assert sorted(map(len, jobs.values())) == [1, 4]
    for members in jobs.values():
        assert support_groups.together(world, members).owner["kind"] == "JobSet"
    assert len(support_groups.apart(world, support_groups.placed(world, "loose", 5))) == 5
