"""The list of keys, and settings as text."""

import pathlib

import pydantic
import pytest
import yaml

from slurm_bridge import errors
from slurm_bridge.settings import keys, loader, shown
from slurm_bridge.settings.model import Settings

KEYS = tuple(keys.every())


def settings(*flags: str) -> Settings:
    """The smallest that work, and these flags."""
    base = ("cluster_id=one", "slurm.url=http://localhost", "slurm.token_file=/run/token")
    return loader.load(None, {}, (*base, *flags))


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_every_key_is_explained(key: keys.Key) -> None:
    """The reference is made from it."""
    assert key.meaning.endswith(".")
    assert key.type
    assert key.default


@pytest.mark.parametrize(
    ("name", "kind", "default"),
    [
        ("cluster_id", "text", "required"),
        ("slurm.user_name", "text or null", "`null`"),
        ("slurm.ca", "path or null", "`null`"),
        ("slurm.job_ids", "group or null", "`first: 50000000`, `last: 66999999`"),
        ("hooks", "list of groups", "`policy`, `eligibility`"),
        ("hooks[].on_error", "`skip` or `hold` or `reject`", "`hold`"),
        ("defaults.mcs_label", "text", "empty"),
        ("owners", "list of groups", "none"),
        ("log.json", "true or false", "`false`"),
        ("gres", "table", "`nvidia.com/gpu: gpu`, `amd.com/gpu: gpu`"),
    ],
)
def test_types_and_defaults_are_in_words(name: str, kind: str, default: str) -> None:
    """No reader has to know Python."""
    (key,) = [key for key in KEYS if key.name == name]
    assert (key.type, key.default) == (kind, default)


def test_what_a_running_daemon_takes_over_is_marked() -> None:
    """The rest needs a restart."""
    tops = {key.name.partition(".")[0].removesuffix("[]") for key in KEYS if key.reloadable}
    managed = {"managed_namespaces", "managed_namespace_selector"}
    tables = {"gres", "hybrid_devices"}
    assert tops == {"hooks", "unhonoured", "attempts", "defaults", "status", "ends", *tables, *managed}


def test_the_effective_configuration_leads_to_itself(tmp_path: pathlib.Path) -> None:
    """What is printed can be used as a file."""
    before = settings("hooks=[{name: policy, options: {a: [1]}}]", "slurm.job_ids=null", "defaults.cpus=500m")
    path = tmp_path / "effective.yaml"
    path.write_text(shown.effective(before))
    assert loader.load(path, {}) == before
    assert yaml.safe_load(path.read_text())["slurm"]["token_file"] == "/run/token"


def test_changed_keys_are_told_by_whether_a_restart_is_needed() -> None:
    """A list is one value, a group is as many as it has keys."""
    old = settings("hooks=[{name: a}]", "ends.after_timeout.Job=hold")
    new = settings("hooks=[{name: b}]", "web.port=1", "slurm.job_ids=null", "defaults.qos=low")
    assert shown.changed(old, new) == (
        ("defaults.qos", "ends.after_timeout.Job", "hooks"),
        ("slurm.job_ids.first", "slurm.job_ids.last", "web.port"),
    )
    assert shown.changed(new, new) == ((), ())


def test_settings_are_frozen() -> None:
    """Whoever holds one may hand it on."""
    with pytest.raises(pydantic.ValidationError, match="frozen"):
        settings().web.port = 1


def test_workloads_are_treated_as_the_objects_themselves_suggest_unless_told_otherwise() -> None:
    """Nobody has to configure anything for groups, and every word that is allowed is listed."""
    given = settings().workloads
    assert (given.job, given.jobset, given.member_lost, given.heterogeneous) == ("pod", "auto", "auto", "auto")
    assert settings("workloads.settle_seconds=0").workloads.settle_seconds == 0
    for wrong in ("job=auto", "jobset=job", "member_lost=follow", "heterogeneous=on", "bind_seconds=0"):
        with pytest.raises(errors.BadConfiguration, match=wrong.partition("=")[0]):
            settings(f"workloads.{wrong}")
