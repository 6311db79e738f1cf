"""What is told of slurm.conf, and from which version on."""

from slurm_desk import NEWEST, Desk
from slurm_port import Port


def test_conf_is_told_by_the_newest_version_only(each_port: Port) -> None:
    """None elsewhere, without a call that fails."""
    conf = each_port.client.conf()
    if each_port.desk.version != NEWEST:
        assert conf is None
        return
    assert conf is not None
    assert conf.select_type == "select/cons_tres"
    assert "gpu" in conf.gres_types
    assert conf.select_parameters == {"CR_CORE_MEMORY"}
    assert conf.preempt_modes == {"DISABLED"}
    assert conf.scheduler_type == "sched/backfill"
    assert conf.max_job_count == 50_000
    assert conf.max_job_id == 67_043_328


def test_conf_is_unknown_to_older_versions(each: Desk) -> None:
    """404 in plain text, as for any path that is not served."""
    answer = each.get("conf")
    assert answer.status == (200 if each.version == NEWEST else 404)
    assert answer.headers["content-type"] == ("application/json" if each.version == NEWEST else "text/plain")


def test_a_wrong_token_reads_no_conf(slurm: Desk) -> None:
    """511 with 1007."""
    assert slurm.with_token("nonsense").get("conf").verdict == (511, [1007])
