"""The files of a release: the same commit makes the same bytes, and they are complete."""

import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import slurm_bridge
from hack.release import __main__ as release
from hack.release import archives, sbom

PROJECT = archives.PROJECT
EPOCH = 1_700_000_000
VERSION = slurm_bridge.__version__

#: The rules of CycloneDX 1.6 for what the bill has.
REF = re.compile(r"pkg:(pypi|deb/debian|generic)/[a-z0-9.+-]+@[A-Za-z0-9.%+~-]+(\?arch=[a-z0-9]+)?")
SERIAL = re.compile(r"urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
TYPES = {"application", "framework", "library", "container", "platform", "operating-system", "device", "file"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[pathlib.Path, pathlib.Path]:
    """Two releases of one tree, made at different times, in another zone and with other rights for new files."""
    folders = tmp_path_factory.mktemp("first") / "out", tmp_path_factory.mktemp("second") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", str(EPOCH))
        release.made(folders[0], None, dirty=True)
        patch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        before = os.umask(0o077)
        try:
            release.made(folders[1], None, dirty=True)
        finally:
            os.umask(before)
    time.tzset()
    return folders


@pytest.fixture
def first(made: tuple[pathlib.Path, pathlib.Path]) -> pathlib.Path:
    """One of them."""
    return made[0]


def contents(folder: pathlib.Path) -> dict[str, bytes]:
    """Each file, by its name."""
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_two_runs_make_equal_bytes(made: tuple[pathlib.Path, pathlib.Path]) -> None:
    """Of every file, the wheel, the chart and the bill among them."""
    one, other = map(contents, made)
    assert one.keys() == {
        "NOTES.md",
        "SHA256SUMS",
        "dashboard.json",
        "prometheus-rules.yaml",
        f"slurm-bridge-{VERSION}.cdx.json",
        f"slurm-bridge-chart-{VERSION}.tgz",
        f"slurm_bridge-{VERSION}-py3-none-any.whl",
        f"slurm_bridge-{VERSION}.tar.gz",
    }
    assert [name for name in one if one[name] != other.get(name)] == []


def test_the_sums_are_those_of_the_files(first: pathlib.Path) -> None:
    """As sha256sum checks them; a changed file is found."""
    command = ("sha256sum", "--check", "--strict", "SHA256SUMS")
    done = subprocess.run(command, cwd=first, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": OK\n") == len(contents(first)) - 1


def test_the_wheel_is_the_program(first: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Every file of the package is in it, and nothing else; it runs from there as it does from the tree."""
    (wheel,) = first.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        packed = {name for name in opened.namelist() if ".dist-info/" not in name}
        for name in opened.namelist():
            opened.extract(name, tmp_path)
    assert packed == {str(file) for file in archives.tracked("slurm_bridge")}
    environ = {"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    code = "import slurm_bridge, sys; print(slurm_bridge.__file__); from slurm_bridge.cli import main; sys.exit(main())"
    command = (sys.executable, "-c", code, "check-config", "--config", "/dev/null")
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.startswith(str(tmp_path))
    assert "cluster_id" in done.stdout + done.stderr


def members(archive: pathlib.Path) -> Iterator[tarfile.TarInfo]:
    """Of a tar.gz."""
    with tarfile.open(archive) as opened:
        yield from opened


def test_the_archives_say_nothing_of_the_machine(first: pathlib.Path) -> None:
    """Neither of its users nor of its times."""
    for archive in (*first.glob("*.tgz"), *first.glob("*.tar.gz")):
        for one in members(archive):
            assert (one.uid, one.gid, one.uname, one.gname, one.mtime, one.mode) == (0, 0, "", "", EPOCH, 0o644)
            assert not one.name.startswith(("/", ".."))


def test_the_chart_is_complete(first: pathlib.Path) -> None:
    """Each file of its folder, below the chart's name as Helm expects it."""
    (chart,) = first.glob("*.tgz")
    folder = PROJECT / "deploy" / "helm" / "slurm-bridge"
    wanted = {f"slurm-bridge/{file.relative_to(folder)}" for file in folder.rglob("*") if file.is_file()}
    assert {one.name for one in members(chart)} == wanted - {"slurm-bridge/.helmignore"}


@pytest.fixture
def bill(first: pathlib.Path) -> Mapping[str, Any]:
    """The bill of materials."""
    found: Mapping[str, Any] = json.loads((first / f"slurm-bridge-{VERSION}.cdx.json").read_text())
    return found


def checked(bill: Mapping[str, Any]) -> None:
    """By the rules of the format."""
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    assert SERIAL.fullmatch(bill["serialNumber"])
    assert TIME.fullmatch(bill["metadata"]["timestamp"])
    every = [bill["metadata"]["component"], *bill["components"]]
    refs = [one["bom-ref"] for one in every]
    assert len(set(refs)) == len(refs)
    for one in every:
        assert one["type"] in TYPES
        assert one["name"]
        assert REF.fullmatch(one["purl"]), one["purl"]
        for licence in one.get("licenses", ()):
            assert licence.keys() in ({"expression"}, {"license"})
    assert all(one["ref"] in refs and set(one["dependsOn"]) <= set(refs) for one in bill["dependencies"])


def test_the_bill_has_every_package_of_the_lock(bill: Mapping[str, Any]) -> None:
    """With its version, its licence, and what it depends on."""
    checked(bill)
    lock = (PROJECT / "requirements" / "run.lock").read_text()
    assert {one["name"]: one["version"] for one in bill["components"]} == dict(sbom.pins(lock))
    assert len(sbom.pins(lock)) == len(re.findall(r"^[a-z]", lock, re.MULTILINE))
    # Its metadata names none.
    assert [one["name"] for one in bill["components"] if not one.get("licenses")] == ["cel-python"]
    (direct,) = (one["dependsOn"] for one in bill["dependencies"] if one["ref"].startswith("pkg:pypi/slurm-bridge@"))
    assert any(one.startswith("pkg:pypi/kubernetes@") for one in direct)


def test_the_bill_of_an_image_has_the_packages_of_its_base() -> None:
    """As rootfs.py has recorded them; versions of Debian have characters that a purl quotes."""
    project, lock = (PROJECT / "pyproject.toml").read_text(), (PROJECT / "requirements" / "run.lock").read_text()
    system = {"python": "3.13.5", "debian": {"libc6": "2.36-9+deb12u10", "zlib1g": "1:1.2.13.dfsg-1"}}
    bill = json.loads(sbom.document("1", project, lock, system, EPOCH))
    checked(bill)
    purls = {one["name"]: one["purl"] for one in bill["components"]}
    assert purls["zlib1g"].startswith("pkg:deb/debian/zlib1g@1%3A1.2.13.dfsg-1?arch=")
    assert purls["cpython"] == "pkg:generic/cpython@3.13.5"


def test_notes_are_the_section_of_the_version() -> None:
    """Neither what is not released nor earlier versions."""
    text = "# Changelog\n\n## Unreleased\n\nnext\n\n## 1.1.0\n\n### Fixed\n\n- a\n\n## 1.0.0\n\nold\n"
    assert release.notes(text, "1.1.0") == "# slurm-bridge 1.1.0\n\n### Fixed\n\n- a\n"


@pytest.mark.parametrize(
    "text", ["", "## 1.1.0\n", "## 1.1.0\n\n## 1.0.0\n\nx\n", "## 1.1.01\n\nx\n", "## Unreleased\n\nx\n"]
)
def test_a_version_without_notes_is_not_released(text: str) -> None:
    """The message names the heading that is missing."""
    with pytest.raises(release.CannotRelease, match=r"CHANGELOG.md has no text below `## 1\.1\.0`"):
        release.notes(text, "1.1.0")


def test_the_changelog_has_this_version() -> None:
    """`make release` would refuse it otherwise."""
    assert release.notes((PROJECT / "CHANGELOG.md").read_text(), VERSION)


def test_an_archive_is_of_its_contents_alone() -> None:
    """The order in which they come does not count."""
    one = archives.archive({"b": b"2", "a": b"1"}, EPOCH)
    assert one == archives.archive({"a": b"1", "b": b"2"}, EPOCH)
    with tarfile.open(fileobj=io.BytesIO(one)) as opened:
        assert opened.getnames() == ["a", "b"]


@pytest.mark.parametrize("out", [PROJECT, PROJECT / "docs" / "..", *PROJECT.parents], ids=str)
def test_the_project_and_the_folders_around_it_are_not_emptied(out: pathlib.Path) -> None:
    with pytest.raises(release.CannotRelease, match="that is the project"):
        release.empty(out)
    assert (PROJECT / "pyproject.toml").is_file()


@pytest.mark.parametrize("names", [["thesis"], ["SHA256SUMS", "year/thesis"]], ids=["no sums", "with folders"])
def test_a_folder_that_is_no_release_keeps_its_files(tmp_path: pathlib.Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    with pytest.raises(release.CannotRelease, match="not empty, and no earlier release"):
        release.empty(tmp_path)
    assert all((tmp_path / name).is_file() for name in names)


def test_a_release_that_failed_on_the_way_is_made_again(tmp_path: pathlib.Path) -> None:
    release.empty(tmp_path)
    (tmp_path / "half.whl").touch()
    release.empty(tmp_path)
    assert contents(tmp_path) == {release.SUMS: b""}
