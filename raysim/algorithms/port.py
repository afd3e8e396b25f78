"""Partially asynchronous training that weighs updates by staleness and similarity (Port).

Su, Li, How asynchronous can federated learning be?, IWQoS 2022, as the authors' code in the simulator Plato has it.

Differences from the paper: a client that is staler than the bound is not told to report at once what it has, so the
bound only scales weights. The similarity is that of an update and the server's last step, as in the code.
"""

from raysim.algorithms.moving import Moving
from raysim.algorithms.signatures import Arrivals, Buffer, Direction, Model, Population, Record, ServerTask
from raysim.parts.lazy import F
from raysim.parts.part import Count, NonNegative, Positive


class Port(Moving):
    """The server steps as soon as K updates have arrived; the stale and the contrary weigh less (Su and Li 2022)."""

    name: str = "port"
    buffer: Count = 10
    """How many updates make a server step (K)."""
    staleness_bound: Positive = 10.0
    """Staleness b in the factor b / (s + b) of an update of staleness s."""
    staleness_weight: Positive = 1.0
    """Weight of that factor."""
    similarity_weight: NonNegative = 1.0
    """Weight of the factor (1 + cos) / 2, where cos is the cosine similarity of an update and the server's last step;
    before the first step, and of updates whose staleness is at most 1, cos is 1. 0: staleness alone counts."""

    @property
    def trigger(self) -> Buffer:
        return Buffer(self.buffer)

    def init(self, model: Model, population: Population) -> Record:
        return {**self.starting(model.w), "last": model.w * 0}

    def weigh(self, arrivals: Arrivals, population: Population) -> None:
        return None  # because weights depend on the updates

    def direction(self, state: Record, arrivals: Arrivals, updates: Record, task: ServerTask) -> Direction:
        deltas = updates["delta"]
        last = state["last"]
        cosines = F.cosine_similarity(deltas, last[None]).tolist() if last.any() else [1.0] * len(arrivals)
        task.vector_flops += 6.0 * deltas.numel()
        shares = [a.samples * self._factor(a.staleness, cos) for a, cos in zip(arrivals, cosines, strict=True)]
        direction = deltas.new_tensor(shares) / sum(shares) @ deltas
        return direction, {"last": direction}

    def _factor(self, staleness: float, cosine: float) -> float:
        similarity = (1 + cosine) / 2 if staleness > 1 else 1.0
        bound = self.staleness_bound
        return self.similarity_weight * similarity + self.staleness_weight * bound / (staleness + bound)
