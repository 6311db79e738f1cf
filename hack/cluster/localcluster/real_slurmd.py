"""The slurmd of a real node, in a container of its own: native jobs run in there, beside the pods of the kubelet."""

import dataclasses

from localcluster import engine, real_images, slurm, slurm_files
from localcluster.config import Config

#: States of a node that answers its slurmctld; what stands behind them (drained, reserved) is not slurmd's.
_ANSWERING = ("IDLE", "MIXED", "ALLOCATED")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Slurmd(slurm.Server):
    """One container; nothing outlives it, because a slurmd keeps nothing that slurmctld does not know."""

    node: str
    number: int

    def make(self, config: Config) -> None:
        """With the one right that makes its jobs' namespaces."""
        mounts = {slurm_files.conf(config): "/cluster/conf:ro", slurm_files.logs(config): "/cluster/log"}
        engine.docker(
            config,
            *("run", "--detach", f"--name={slurm.container(config, self.service)}", f"--hostname={self.node}"),
            *("--network=host", "--log-driver=none", "--cap-add=SYS_ADMIN"),
            f"--label={slurm.LABEL}={slurm_files.fingerprint(config)}",
            *(f"--volume={folder}:{place}" for folder, place in mounts.items()),
            *(real_images.tag(), self.node),
        )

    def address(self, config: Config) -> str:
        """One port after the other."""
        return f"127.0.0.1:{config.port('slurmd') + self.number - 1}"


def slurmd(node: str, number: int) -> Slurmd:
    """The part of one node."""
    return Slurmd(
        service=f"slurmd-{node}",
        node=node,
        number=number,
        complaint=lambda config: _complaint(config, node),
        image=real_images.tag,
    )


def _complaint(config: Config, node: str) -> str:
    """slurmctld hears it."""
    try:
        said = slurm.execute(config, "slurmctld", "sinfo", "--noheader", f"--nodes={node}", "--format=%T")
    except engine.EngineError as error:
        return str(error)
    state = said.split("\n")[0].upper()
    return "" if state.startswith(_ANSWERING) and not state.endswith("*") else f"{node} is {state or 'unknown'}"
