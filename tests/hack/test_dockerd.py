"""One private engine per cache: two on the same images would destroy them."""

import pathlib

import pytest

from localcluster import dockerd, engine, image, main
from localcluster.config import Config


def neighbours(tmp_path: pathlib.Path) -> tuple[Config, Config]:
    """Two clusters on one cache."""
    return tuple(Config(directory=tmp_path / name, cache=tmp_path / "cache") for name in ("one", "two"))  # type: ignore[return-value]


def note_home(config: Config) -> None:
    """As the start of an engine in the folder of this cluster leaves it."""
    home = config.directory / "engine"
    home.mkdir(parents=True)
    config.cache.mkdir(exist_ok=True)
    (config.cache / "engine.home").write_text(f"{home}\n")


def test_without_an_engine_everyone_would_have_an_own_one(tmp_path: pathlib.Path) -> None:
    """Where none was started the folder of the cluster is its place."""
    for config in neighbours(tmp_path):
        assert dockerd.is_own(config)
        assert dockerd.home(config) == config.directory / "engine"


def test_the_second_cluster_borrows(tmp_path: pathlib.Path) -> None:
    """Both know the same address, and only the first may end it."""
    one, two = neighbours(tmp_path)
    note_home(one)
    assert dockerd.address(one) == dockerd.address(two)
    assert (dockerd.is_own(one), dockerd.is_own(two)) == (True, False)


def test_the_borrower_stops_nothing(tmp_path: pathlib.Path) -> None:
    """Its `down` leaves the engine's folder and its record alone, and its tests may not kill it."""
    one, two = neighbours(tmp_path)
    note_home(one)
    engine.Engine().stop(two)
    assert dockerd.home(two).exists()
    with pytest.raises(engine.EngineError, match="no private engine of this cluster"):
        engine.Engine().signal(two, 9)  # type: ignore[arg-type]


def test_a_removed_folder_frees_the_place(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the first cluster's folder was simply deleted, the next one has the engine itself."""
    one, two = neighbours(tmp_path)
    note_home(one)
    dockerd.home(one).rmdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "dockerd").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "dockerd").chmod(0o755)
    with pytest.raises(engine.part.PartError, match="ended by itself"):
        dockerd.start(two, lambda: "not yet")
    assert dockerd.is_own(two)
    assert not dockerd.is_own(one)


ENGINE = """#!/bin/sh
echo "$*" >> "$0.calls"
case "$*" in
*" info "*) echo 1.0 commit ;;
"ps --all --quiet") echo container ;;
"inspect "*) printf '%s\\n' {conf} /elsewhere ;;
images*) echo {tag}; echo slurm-bridge/slurm:old ;;
"image inspect"*) test -e "$0.built" ;;
build*) touch "$0.built" ;;
esac
"""


def pretend_engine(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, **words: object) -> pathlib.Path:
    """A docker command that notes what it is told; the file of its notes."""
    script = tmp_path / "bin" / "docker"
    script.parent.mkdir()
    script.write_text(ENGINE.format(**{"conf": "/elsewhere", "tag": "none"} | words))
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:/bin:/usr/bin")
    return script.with_name("docker.calls")


def test_down_refuses_to_begin_while_others_borrow(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not one server is stopped when the engine cannot be; a neighbour whose folder is gone is no reason."""
    one, two = neighbours(tmp_path)
    one.save()
    two.save()
    note_home(one)
    pretend_engine(tmp_path, monkeypatch, conf=two.directory / "slurm" / "conf")
    with pytest.raises(engine.EngineError, match=str(two.directory)):
        main.down(one, purge=False)
    (two.directory / "config.json").unlink()
    engine.require_no_borrowers(one)


def test_a_new_image_supersedes_the_old_one(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only images of other inputs are removed, and only ours."""
    config, _ = neighbours(tmp_path)
    calls = pretend_engine(tmp_path, monkeypatch, tag=image.tag())
    image.Image().start(config)
    removals = [line for line in calls.read_text().splitlines() if line.startswith("rmi")]
    assert removals == ["rmi slurm-bridge/slurm:old"]
