"""The files of the local Slurm servers, their tokens, and where packages come from."""

import base64
import hmac
import json
import pathlib
from typing import Any

import pytest

from localcluster import hosts, image, slurm, slurm_conf, slurm_files
from localcluster.config import Config


def config(**changes: Any) -> Config:
    """A configuration whose folder does not exist, unless said otherwise."""
    return Config(**{"directory": pathlib.Path("/nowhere"), **changes})


def lines(text: str, start: str) -> list[str]:
    """The lines of a kind."""
    return [line for line in text.splitlines() if line.startswith(start)]


def slurm_conf_of(**changes: Any) -> str:
    """The slurm.conf of a configuration."""
    return slurm_conf.files(config(**changes))["slurm.conf"]


def test_every_node_is_external() -> None:
    """No node waits for a slurmd that never comes."""
    assert all(line.endswith("State=EXTERNAL") for line in lines(slurm_conf_of(), "NodeName="))


def test_every_machine_has_one_node_line() -> None:
    """All machines are configured, none twice."""
    text = slurm_conf_of(nodes=1000)
    names = [name for line in lines(text, "NodeName=") for name in expanded(line.split()[0].partition("=")[2])]
    assert names == [machine.slurm_name for machine in hosts.slurm_nodes(config(nodes=1000))]


def test_hyperthreaded_nodes_keep_their_number_of_cpus() -> None:
    """Two threads per core halve the cores, not the CPUs."""
    (line,) = [line for line in lines(slurm_conf_of(), "NodeName=") if "ThreadsPerCore=2" in line]
    assert "CPUs=64 Sockets=1 CoresPerSocket=32 ThreadsPerCore=2" in line


def test_there_is_one_default_partition() -> None:
    """A job that names no partition goes to debug."""
    (default,) = [line for line in lines(slurm_conf_of(), "PartitionName=") if "Default=YES" in line]
    assert default.split()[0] == "PartitionName=debug"


def test_a_partition_without_machines_is_left_out() -> None:
    """Slurm refuses a partition whose hostlist is empty, so a tiny cluster has fewer partitions."""
    names = [line.split()[0].partition("=")[2] for line in lines(slurm_conf_of(nodes=1), "PartitionName=")]
    assert names == ["debug", "batch", "limited", "exclusive", "closed", "blocks", "dynamic"]


@pytest.mark.parametrize(
    ("accounting", "storage"), [(False, "accounting_storage/none"), (True, "accounting_storage/slurmdbd")]
)
def test_accounting_chooses_the_storage(accounting: bool, storage: str) -> None:
    """The database is used only where it was asked for."""
    assert lines(slurm_conf_of(accounting=accounting), "AccountingStorageType=") == [f"AccountingStorageType={storage}"]


def test_gres_conf_tells_the_types() -> None:
    """Untyped, v100 and a100 machines have one line each."""
    assert lines(slurm_conf.files(config())["gres.conf"], "NodeName=") == [
        "NodeName=ext[007-012] Name=gpu Count=8",
        "NodeName=ext[013-014] Name=gpu Type=v100 Count=8",
        "NodeName=ext[015-016] Name=gpu Type=a100 Count=8",
    ]


def test_the_tree_is_the_default_topology_and_the_partition_has_blocks() -> None:
    """One partition sees the same machines as blocks."""
    files = slurm_conf.files(config())
    assert "- topology: racks\n  cluster_default: true" in files["topology.yaml"]
    assert "    - block: block1\n      nodes: ext[001-004]" in files["topology.yaml"]
    assert "PartitionName=blocks Nodes=ext[001-016] Topology=blocks" in files["slurm.conf"]


def test_the_ports_are_the_clusters_own() -> None:
    """Two clusters with different port bases do not meet."""
    assert "SlurmctldPort=31020" in slurm_conf_of(port_base=31000)
    assert "StoragePort=31023" in slurm_conf.slurmdbd_conf(config(port_base=31000), "password")


def expanded(hostlist: str) -> list[str]:
    """The inverse of the function under test, for one bracket."""
    prefix, _, inside = hostlist.rstrip("]").partition("[")
    if not inside:
        return [prefix]
    names = []
    for part in inside.split(","):
        first, _, last = part.partition("-")
        names += [f"{prefix}{number:0{len(first)}}" for number in range(int(first), int(last or first) + 1)]
    return names


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([1], "ext001"),
        ([1, 2, 3], "ext[001-003]"),
        ([1, 3], "ext[001,003]"),
        ([1, 2, 3, 9, 20], "ext[001-003,009,020]"),
    ],
)
def test_hostlists_join_neighbours(numbers: list[int], expected: str) -> None:
    """Neighbours become a range, a single name stays a name."""
    machines = hosts.slurm_nodes(config())
    assert slurm_conf.hostlist(machines[number - 1] for number in numbers) == expected


def test_a_token_names_its_user_and_is_signed_with_the_key() -> None:
    """The three parts of a token are header, claims and an HMAC-SHA256 over both."""
    head, claims, signature = slurm_files.signed(b"key", {"sun": "alice", "exp": 1}).split(".")
    assert decoded(claims) == {"sun": "alice", "exp": 1}
    assert decoded(head) == {"alg": "HS256", "typ": "JWT"}
    expected = base64.urlsafe_b64encode(hmac.digest(b"key", f"{head}.{claims}".encode(), "sha256"))
    assert signature == expected.rstrip(b"=").decode()


def decoded(part: str) -> object:
    """What one part of a token says."""
    return json.loads(base64.urlsafe_b64decode(part + "=="))


def test_files_are_private_and_a_second_start_changes_nothing(tmp_path: pathlib.Path) -> None:
    """Keys and tokens are for their owner only; keys survive, so that running servers keep trusting each other."""
    chosen = config(directory=tmp_path)
    part = slurm_files.SlurmFiles()
    assert part.state(chosen) is None
    part.start(chosen)
    before = slurm_files.fingerprint(chosen)
    part.start(chosen)
    assert part.state(chosen) == "20 nodes, accounting off"
    assert slurm_files.fingerprint(chosen) == before
    private = [*slurm_files.token_files(chosen).values(), slurm_files.conf(chosen) / "jwt_hs256.key"]
    assert {file.stat().st_mode & 0o777 for file in private} == {0o600}


def test_another_configuration_needs_a_new_start(tmp_path: pathlib.Path) -> None:
    """What was written for one configuration does not pass for another, and nothing of it is left behind."""
    part = slurm_files.SlurmFiles()
    part.start(config(directory=tmp_path, accounting=True))
    assert part.state(config(directory=tmp_path, accounting=False)) is None
    part.start(config(directory=tmp_path, accounting=False))
    assert not (slurm_files.conf(config(directory=tmp_path)) / "slurmdbd.conf").exists()


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ("deb http://mirror.example/debian trixie main\n", "http://mirror.example/debian"),
        ("deb [signed-by=/a/key.gpg] https://mirror.example/debian/ sid main", "https://mirror.example/debian"),
        ("Types: deb\nURIs: http://mirror.example/debian/\nSuites: trixie\n", "http://mirror.example/debian"),
        ("# deb http://mirror.example/debian trixie main\n", None),
        ("deb http://mirror.example/debian-security trixie-security main\n", None),
        ("deb http://mirror.example/ubuntu noble main\n", None),
        ("", None),
    ],
)
def test_the_mirror_is_the_machines_own(sources: str, expected: str | None) -> None:
    """The first Debian archive of apt's sources is used, whatever their format; other archives are not."""
    assert image.debian_mirror(sources) == expected


def test_the_image_is_named_after_its_inputs() -> None:
    """The same folder gives the same name, so that a warm start builds nothing."""
    assert image.tag() == image.tag()
    assert image.tag().startswith("slurm-bridge/slurm:")


def test_two_clusters_have_different_containers() -> None:
    """Clusters in different folders may share an engine."""
    here, there = config(directory=pathlib.Path("/a")), config(directory=pathlib.Path("/b"))
    assert slurm.container(here, "slurmctld") != slurm.container(there, "slurmctld")


def test_the_reserved_node_is_an_ordinary_one() -> None:
    """The reservation takes the last plain machine out of the default partition."""
    assert slurm.reserved_node(config()) == "ext006"
