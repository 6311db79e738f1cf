"""The metrics of the admission webhook: a part of the daemon's, and the whole of a webhook's own process."""

from typing import Final

from slurm_bridge.telemetry.instruments import Instruments

_CALLS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class AdmissionMetrics(Instruments):
    """The metrics of one process that serves the webhook and nothing else."""

    def __init__(self, *, version: str = "") -> None:
        super().__init__()
        self._admission()
        self.kubernetes_requests = self._histogram(
            "kubernetes_request_duration_seconds", "Calls to the API server.", _CALLS, "operation", "outcome"
        )
        self.configuration_reloads = self._counter(
            "configuration_reloads_total",
            "Reloads of the configuration: ok, or refused (the last good one stays).",
            "result",
        )
        self._build(version)

    def request_to_kubernetes(self, operation: str, outcome: str, seconds: float) -> None:
        """Observe one call of the Cluster port."""
        self.kubernetes_requests.labels(operation, outcome).observe(seconds)
