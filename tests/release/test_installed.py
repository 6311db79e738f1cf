"""`pip install` of the wheel into an empty environment, from the index that pip is configured for: the same program."""

import pathlib
import sys

import pytest

import slurm_bridge
from hack.release import archives
from tests.release import support_release
from tests.release.support_release import LOCK

CONFIGURATION = """\
cluster_id: here
slurm: {url: "http://127.0.0.1:9", token_file: /token}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Installed as a user would, but with the pinned versions: no package is taken without its hash."""
    folder, out = tmp_path_factory.mktemp("installed"), tmp_path_factory.mktemp("wheel")
    archives.distributions(out, tmp_path_factory.mktemp("build"), epoch=1_700_000_000)
    (wheel,) = out.glob("*.whl")
    environment = folder / "environment"
    support_release.said(sys.executable, "-m", "venv", "--without-pip", environment, cwd=folder)
    pip = (sys.executable, "-m", "pip", f"--python={environment / 'bin' / 'python3'}", "install", "--quiet")
    support_release.said(*pip, "--require-hashes", f"--requirement={LOCK}", cwd=folder)
    support_release.said(*pip, "--no-index", wheel, cwd=folder)
    return environment / "bin" / "slurm-bridge"


@pytest.mark.timeout(400)
def test_it_has_the_version(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Of the tree that it was built of."""
    said = support_release.said(program, "--version", cwd=tmp_path)
    assert said == f"slurm-bridge {slurm_bridge.__version__}\n"


@pytest.mark.timeout(400)
def test_it_reads_a_configuration(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Its dependencies are complete: the wheel was installed without any that the lock does not have."""
    (tmp_path / "config.yaml").write_text(CONFIGURATION)
    said = support_release.said(program, "check-config", "--config", "config.yaml", cwd=tmp_path)
    assert "cluster_id" in said


@pytest.mark.timeout(400)
def test_it_runs_the_demo(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Outside the tree: without its examples, with the pods that it makes itself."""
    said = support_release.said(program, "demo", "--once", "--pods", "8", cwd=tmp_path)
    assert "jobs left in Slurm: 0" in said
