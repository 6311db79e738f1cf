"""The files that the Slurm servers read, as text: pure functions of the configuration, so that tests can read them.

Everything that a test of the daemon may want to meet is on one cluster: partitions with different rules, typed and
untyped GPUs, two topologies, licenses. Accounting adds the rights of users.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence

from localcluster import hosts
from localcluster.config import Config

#: The host name of all containers: slurmctld refuses to run on a host that its configuration does not name.
CONTROLLER = "slurm"

#: Measured: 69 placeholder jobs per second with Slurm's defaults, 689 with these.
SCHEDULER_PARAMETERS = (
    "default_queue_depth=10000",
    "partition_job_depth=10000",
    "sched_interval=1",
    "sched_min_interval=0",
    "batch_sched_delay=0",
    "bf_interval=5",
    "bf_max_job_test=10000",
)

#: Partition -> what differs from the defaults. Its nodes are those that name it.
PARTITIONS = {
    "debug": "Default=YES",
    "batch": "",
    "limited": "MaxTime=10 DefaultTime=5",
    "exclusive": "OverSubscribe=EXCLUSIVE",
    "closed": "State=DOWN",
    "blocks": "Topology=blocks",
    "gpu": "",
    "smt": "",
    "mapped": "",
}

#: Of nodes that are added while the cluster runs: those with this feature.
DYNAMIC = "dynamic"

#: After so long without a slurmd a node is down; tests wait for it.
SLURMD_SECONDS = 30

#: What stands for the GPUs of a real node, for the slices of one more, and for its cards.
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random")
SLICES = ("/dev/urandom", "/dev/tty", "/dev/ptmx")
CARDS = ("/dev/null", "/dev/zero")

LICENSES = "matlab:10,ansys:2"


def files(config: Config) -> dict[str, str]:
    """File name -> text, without the secrets."""
    machines, real = hosts.slurm_nodes(config), hosts.real_nodes(config)
    return {
        "slurm.conf": slurm_conf(config, machines) + "".join(f"{line}\n" for line in _real(config, real)),
        "gres.conf": gres_conf(machines) + "".join(f"{line}\n" for host in real for line in _real_gres(host)),
        "topology.yaml": topology_yaml(config, machines),
        "hosts": f"127.0.0.1 {' '.join(('localhost', CONTROLLER, *(host.slurm_name for host in real)))}\n",
    }


def slurm_conf(config: Config, machines: Sequence[hosts.Host]) -> str:
    """The whole slurm.conf."""
    sections = (_servers(config), _scheduling(), _accounting(config), _nodes(machines), _partitions(machines))
    return "\n".join(line for section in sections for line in section) + "\n"


def _servers(config: Config) -> Iterable[str]:
    return (
        "ClusterName=local",
        f"SlurmctldHost={CONTROLLER}(127.0.0.1)",
        f"SlurmctldPort={config.port('slurmctld')}",
        "SlurmUser=slurm",
        "AuthType=auth/slurm",
        "CredType=auth/slurm",
        "AuthAltTypes=auth/jwt",
        "AuthAltParameters=jwt_key=/etc/slurm/jwt_hs256.key",
        "StateSaveLocation=/var/spool/slurmctld",
        "SlurmctldPidFile=/run/slurmctld/slurmctld.pid",
        "SlurmctldDebug=info",
        # Nothing listens beyond loopback.
        f"CommunicationParameters=NoCtldInAddrAny{',NoInAddrAny' if config.real_nodes else ''}",
        # A step that starts a session of its own is found through its parents.
        f"ProctrackType=proctrack/{'linuxproc' if config.real_nodes else 'pgid'}",
        "TaskPlugin=task/none",
        "MailProg=/bin/true",
        "ReturnToService=2",
        # Ended jobs count towards MaxJobCount until MinJobAge: tests want to see a job end, and then to see it gone.
        "MinJobAge=30",
        "MaxJobCount=50000",
        # Without room in its table slurmctld refuses every node that a client adds.
        f"MaxNodeCount={config.nodes + 256}",
    )


def _scheduling() -> Iterable[str]:
    return (
        "SchedulerType=sched/backfill",
        f"SchedulerParameters={','.join(SCHEDULER_PARAMETERS)}",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core_Memory",
        "PriorityType=priority/multifactor",
        "GresTypes=gpu,card",
        f"Licenses={LICENSES}",
    )


def _accounting(config: Config) -> Iterable[str]:
    if not config.accounting:
        # Without it slurmctld forgets a job's wckey; slurmdbd would have to be told as well.
        return ("AccountingStorageType=accounting_storage/none", "TrackWCKey=yes")
    return (
        "AccountingStorageType=accounting_storage/slurmdbd",
        "AccountingStorageHost=127.0.0.1",
        f"AccountingStoragePort={config.port('slurmdbd')}",
        "AccountingStorageTRES=gres/gpu,gres/gpu:v100,gres/gpu:a100",
        "AccountingStorageEnforce=associations,limits,qos",
        "AccountingStoreFlags=job_comment,job_extra",
        "PreemptType=preempt/qos",
        "PreemptMode=CANCEL",
    )


def _nodes(machines: Sequence[hosts.Host]) -> Iterable[str]:
    for group in _runs(machines, lambda machine: (_shape(machine), machine.features)):
        features = ",".join(group[0].features)
        yield f"NodeName={hostlist(group)} NodeAddr=127.0.0.1 {_shape(group[0])} Feature={features} State=EXTERNAL"


def _real(config: Config, real: Sequence[hosts.Host]) -> Iterable[str]:
    """Nodes with a slurmd each, all of them on this machine: a port of their own, and more CPUs than it may have."""
    if not real:
        return
    yield "SlurmdParameters=config_overrides"
    yield "SlurmdSpoolDir=/var/spool/slurmd.%n"
    yield "SlurmdPidFile=/run/slurmd.%n.pid"
    yield f"SlurmdTimeout={SLURMD_SECONDS}"
    for number, host in enumerate(real):
        address = f"NodeAddr=127.0.0.1 Port={config.port('slurmd') + number}"
        yield f"NodeName={host.slurm_name} {address} {_shape(host)} Feature={','.join(host.features)} State=UNKNOWN"
    yield f"PartitionName={hosts.HYBRID} Nodes={hostlist(real)}"


def _real_gres(host: hosts.Host) -> Iterable[str]:
    """What is counted is a file: any device that every container has will do. Indices follow the lines."""
    devices = [(host.gpu_type, file) for file in DEVICES[: host.gpus]]
    devices += zip(host.slices, SLICES, strict=False)
    for kind, group in itertools.groupby(devices, key=lambda one: one[0]):
        yield f"NodeName={host.slurm_name} Name=gpu Type={kind} File={','.join(file for _, file in group)}"
    if host.cards:
        yield f"NodeName={host.slurm_name} Name=card File={','.join(CARDS[: host.cards])}"


def _shape(machine: hosts.Host) -> str:
    threads = machine.threads_per_core
    cores = machine.cpus // threads
    shape = (
        f"CPUs={cores * threads} Sockets=1 CoresPerSocket={cores} ThreadsPerCore={threads} "
        f"RealMemory={machine.memory_mib}"
    )
    return f"{shape} Gres={_gres(machine)}" if machine.gpus else shape


def _gres(machine: hosts.Host) -> str:
    whole = ":".join(word for word in ("gpu", machine.gpu_type, str(machine.gpus)) if word)
    slices = (f"gpu:{kind}:{len(list(group))}" for kind, group in itertools.groupby(machine.slices))
    cards = [f"card:{machine.cards}"] if machine.cards else []
    return ",".join((whole, *slices, *cards))


def _partitions(machines: Sequence[hosts.Host]) -> Iterable[str]:
    for name, options in PARTITIONS.items():
        members = [machine for machine in machines if name in machine.partitions]
        if members:
            yield f"PartitionName={name} Nodes={hostlist(members)} {options}".rstrip()
    yield f"NodeSet={DYNAMIC} Feature={DYNAMIC}"
    yield f"PartitionName={DYNAMIC} Nodes={DYNAMIC}"


def gres_conf(machines: Sequence[hosts.Host]) -> str:
    """One line per run of nodes with the same GPUs."""
    with_gpus = [machine for machine in machines if machine.gpus]
    lines = []
    for group in _runs(with_gpus, _gres):
        kind = f" Type={group[0].gpu_type}" if group[0].gpu_type else ""
        lines.append(f"NodeName={hostlist(group)} Name=gpu{kind} Count={group[0].gpus}")
    return "\n".join(["AutoDetect=off", *lines]) + "\n"


def topology_yaml(config: Config, machines: Sequence[hosts.Host]) -> str:
    """Racks below one switch for the whole cluster, and blocks for the partition that asks for them."""
    racks = _runs(machines, lambda machine: machine.rack)
    blocks = _runs([machine for machine in machines if "blocks" in machine.partitions], lambda machine: machine.block)
    lines = ["- topology: racks", "  cluster_default: true", "  tree:", "    switches:", "    - switch: core"]
    racks += [list(hosts.real_nodes(config))] if config.real_nodes else []
    lines.append(f"      children: {','.join(group[0].rack for group in racks)}")
    for group in racks:
        lines += [f"    - switch: {group[0].rack}", f"      nodes: {hostlist(group)}"]
    lines += ["- topology: blocks", "  cluster_default: false", "  block:", "    block_sizes:"]
    lines += [f"    - {hosts.block_size(config.nodes)}", "    blocks:"]
    for group in blocks:
        lines += [f"    - block: {group[0].block}", f"      nodes: {hostlist(group)}"]
    return "\n".join(lines) + "\n"


def slurmdbd_conf(config: Config, password: str) -> str:
    """Holds the database password: mode 0600."""
    lines = (
        f"DbdHost={CONTROLLER}",
        "DbdAddr=127.0.0.1",
        "CommunicationParameters=NoInAddrAny",
        f"DbdPort={config.port('slurmdbd')}",
        "SlurmUser=slurm",
        "AuthType=auth/slurm",
        "AuthAltTypes=auth/jwt",
        "AuthAltParameters=jwt_key=/etc/slurm/jwt_hs256.key",
        "PidFile=/run/slurmdbd/slurmdbd.pid",
        "DebugLevel=info",
        "StorageType=accounting_storage/mysql",
        "StorageHost=127.0.0.1",
        f"StoragePort={config.port('mariadb')}",
        "StorageUser=slurm",
        f"StoragePass={password}",
    )
    return "\n".join(lines) + "\n"


def grants_sql(password: str) -> str:
    """Run by the database at every start: one statement per line."""
    return (
        "CREATE DATABASE IF NOT EXISTS slurm_acct_db;\n"
        "CREATE USER IF NOT EXISTS 'slurm'@'127.0.0.1';\n"
        f"ALTER USER 'slurm'@'127.0.0.1' IDENTIFIED BY '{password}';\n"
        "GRANT ALL ON slurm_acct_db.* TO 'slurm'@'127.0.0.1';\n"
    )


def hostlist(machines: Iterable[hosts.Host]) -> str:
    """ext[001-003,007]: the names share prefix and width."""
    names = [machine.slurm_name for machine in machines]
    prefix = names[0].rstrip("0123456789")
    digits = [name.removeprefix(prefix) for name in names]
    if len(digits) == 1:
        return names[0]
    ranges = (
        [text for _, text in group]
        for _, group in itertools.groupby(enumerate(digits), key=lambda pair: int(pair[1]) - pair[0])
    )
    parts = (group[0] if len(group) == 1 else f"{group[0]}-{group[-1]}" for group in ranges)
    return f"{prefix}[{','.join(parts)}]"


def _runs(machines: Iterable[hosts.Host], key: Callable[[hosts.Host], object]) -> list[list[hosts.Host]]:
    """Neighbours with the same key; a key comes back as a new run only if it really stands apart."""
    return [list(group) for _, group in itertools.groupby(machines, key=key)]
