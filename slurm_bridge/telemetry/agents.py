"""The metrics of an agent."""

from typing import Final

from slurm_bridge.telemetry.instruments import Instruments

_SAMPLES: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class AgentMetrics(Instruments):
    """The metrics of one agent."""

    def __init__(self, *, version: str = "") -> None:
        super().__init__()
        self.requests = self._histogram(
            "agent_request_duration_seconds",
            "Requests for samples, by HTTP status, including the wait for an idle pipeline.",
            _SAMPLES,
            "strategy",
            "status",
        )
        self.sampled = self._counter("agent_sampled_nodes_total", "Nodes in the answers.", "strategy")
        self.nodes = self._gauge("agent_nodes", "Nodes of this agent's shard.")
        self.kubernetes_requests = self._histogram(
            "kubernetes_request_duration_seconds", "Calls to the API server.", _SAMPLES, "operation", "outcome"
        )
        self._build(version)

    def request_to_kubernetes(self, operation: str, outcome: str, seconds: float) -> None:
        """Observe one call of the Cluster port."""
        self.kubernetes_requests.labels(operation, outcome).observe(seconds)
