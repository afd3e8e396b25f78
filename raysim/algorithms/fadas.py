"""Federated adaptive asynchronous optimisation (FADAS).

Wang, Wang, Lu, Chen, FADAS: Towards federated adaptive asynchronous optimization, ICML 2024.

Differences from the paper: none, but where the authors' code differs from the paper, the keys of the rule choose
between the two. Without bias correction, as in the paper, the first step is `lr` times (1 - beta1) / sqrt(1 - beta2) in
each coordinate; that factor is 1 by default.
"""

from raysim.algorithms.moving import Aggregating
from raysim.algorithms.rules import Rule, ServerAMSGrad
from raysim.algorithms.signatures import Arrivals, Buffer, Direction, Population, Record, ServerTask
from raysim.parts.part import Count


class FADAS(Aggregating):
    """FedBuff whose server takes AMSGrad steps, shorter ones where updates are stale (Wang et al. 2024)."""

    name: str = "fadas"
    buffer: Count = 5
    """How many updates make a server step (M)."""
    server: Rule = ServerAMSGrad(lr=1e-3, delay_adaptive="scaled")
    """How the server moves; by default AMSGrad with the authors' delay-adaptive rate. `delay_adaptive: capped` is that
    of the paper, and the authors take `lr: 1e-4` with `delay_adaptive: none`. The authors' code has `bias_correction:
    true`, the paper has not."""

    @property
    def trigger(self) -> Buffer:
        return Buffer(self.buffer)

    def weigh(self, arrivals: Arrivals, population: Population) -> list[float]:
        return [1 / self.buffer] * len(arrivals)

    def direction(self, state: Record, arrivals: Arrivals, updates: Record, task: ServerTask) -> Direction:
        return updates["delta"], {}
