"""Adam of the server."""

from __future__ import annotations

from raysim.algorithms.rules.adaptive import AdaptiveRule
from raysim.algorithms.signatures import Tensor
from raysim.parts.part import Decay


class ServerAdam(AdaptiveRule):
    """v = beta2 v + (1 - beta2) direction^2 (Reddi et al. 2021, FedAdam)."""

    name: str = "adam"
    beta2: Decay = 0.99
    """Decay of the running mean of squared directions."""
    bias_correction: bool = False
    """Whether to correct the bias of the running means, as Kingma and Ba do. Reddi et al. do not."""

    def second(self, v: Tensor, square: Tensor) -> Tensor:
        return self.beta2 * v + (1 - self.beta2) * square

    def unbiased(self, mean: Tensor, root: Tensor, steps: Tensor) -> tuple[Tensor, Tensor]:
        if not self.bias_correction:
            return mean, root
        return mean / (1 - self.beta1**steps), root / (1 - self.beta2**steps).sqrt()
