"""Build products: made once, made again when their inputs change."""

import dataclasses
import pathlib

import pytest

from localcluster import gomodules, parts
from localcluster.config import Config


def product(folder: pathlib.Path, inputs: str = "one") -> gomodules.Product:
    """A product that is a copy of its inputs."""

    def make(fresh: pathlib.Path) -> None:
        fresh.write_text(inputs)

    return gomodules.Product(name="x", file=folder / "x", inputs=inputs, make=make)


def test_product_is_fresh_until_its_inputs_change(tmp_path: pathlib.Path) -> None:
    """The stamp beside it decides, not its age."""
    first = product(tmp_path)
    assert not first.is_fresh()
    first.build()
    assert first.is_fresh()
    assert not dataclasses.replace(first, inputs="two").is_fresh()


def test_failed_build_leaves_the_old_product(tmp_path: pathlib.Path) -> None:
    """A server never runs from half a file."""
    product(tmp_path).build()

    def fail(fresh: pathlib.Path) -> None:
        fresh.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        dataclasses.replace(product(tmp_path, "two"), make=fail).build()
    assert (tmp_path / "x").read_text() == "one"


def test_every_product_has_its_own_file(tmp_path: pathlib.Path) -> None:
    """No two products overwrite each other."""
    files = [entry.file for entry in gomodules.products(Config(cache=tmp_path))]
    assert len(set(files)) == len(files)


@pytest.mark.parametrize(
    "module",
    [*gomodules.MODULES, *gomodules.FRAMEWORKS, *gomodules.REAL, *gomodules.TOOLS],
    ids=lambda module: module.folder,
)
def test_modules_are_pinned(module: gomodules.Module) -> None:
    """Every module has its checksums, and requires what it builds."""
    folder = gomodules.SOURCES / module.folder
    required, sums = (folder / "go.mod").read_text(), (folder / "go.sum").read_text()
    imported = "".join(file.read_text() for file in folder.glob("*.go"))
    assert sums.count("\n") > 50
    assert all(package == "." or f'"{package}"' in imported for _, package in module.binaries)
    assert module.manifests_of in required


def test_only_real_nodes_need_kubelets(tmp_path: pathlib.Path) -> None:
    """A cluster without them builds nothing for them."""
    assert not set(gomodules.modules(Config(cache=tmp_path))) & set(gomodules.REAL)
    assert set(gomodules.modules(Config(cache=tmp_path, real_nodes=1))) >= set(gomodules.REAL)


def test_only_frameworks_need_their_controllers(tmp_path: pathlib.Path) -> None:
    """A cluster without them builds and starts none of them; one with them also has their definitions."""
    plain, asked = Config(cache=tmp_path), Config(cache=tmp_path, frameworks=True)
    assert not set(gomodules.modules(plain)) & set(gomodules.FRAMEWORKS)
    assert set(gomodules.modules(asked)) >= set(gomodules.FRAMEWORKS)
    more = {part.name for part in parts.of(asked)} - {part.name for part in parts.of(plain)}
    assert {"mpi", "trainer", "kuberay", "kueue", "argo", "mpi-mpijobs-crd", "kueue-webhooks"} <= more


def test_no_cluster_builds_the_tools_of_tests(tmp_path: pathlib.Path) -> None:
    """A cluster is up without them."""
    names = {one.name for one in gomodules.products(Config(cache=tmp_path, real_nodes=2))}
    assert not names & {name for module in gomodules.TOOLS for name, _ in module.binaries}


@pytest.mark.parametrize("folder", ["kubernetes", "kubelet"])
def test_kubernetes_staging_is_replaced(folder: str) -> None:
    """Every staging module of Kubernetes comes from its own repository."""
    text = (gomodules.SOURCES / folder / "go.mod").read_text()
    assert text.count(" v0.36.3\n") >= 33
    assert "./staging" not in text.split("replace (")[1]
