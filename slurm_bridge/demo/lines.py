"""The demo as plain text, for pipes and logs: one line for each step of a pod."""

from collections.abc import Callable

from slurm_bridge.demo import scene
from slurm_bridge.demo.scene import Frame, PodStage

#: Seconds between two lines about calls, and what pods wait for.
_CALLS = 2.0


class LineDisplay:
    """Implements show.Display."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._last: Frame | None = None
        self._told = 0.0

    def begin(self, text: str) -> None:
        self._write(text)

    def show(self, frame: Frame) -> None:
        for row, stage in scene.steps(self._last, frame):
            where = ""
            if row.job_id and stage is not PodStage.PENDING:
                where = f"{scene.job_of(row)}  {row.why if stage is PodStage.QUEUED else row.node}"
            self._write(f"{frame.seconds:6.2f} s  {row.name:<28} {stage.value:<10}{where}".rstrip())
        self._last = frame
        if frame.seconds - self._told >= _CALLS:
            self._told, calls = frame.seconds, frame.calls
            self._write(
                f"{frame.seconds:6.2f} s  calls per second: {calls.kube_rate:.1f} to Kubernetes, "
                f"{calls.slurm_rate:.1f} to Slurm"
            )
            for why, pods in scene.obstacles(frame):
                self._write(
                    f"{frame.seconds:6.2f} s  {pods} {'pods are' if pods > 1 else 'pod is'} not submitted: {why}"
                )
