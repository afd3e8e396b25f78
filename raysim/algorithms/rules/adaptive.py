"""The base of rules whose server divides by the root of a second moment: Adagrad, Adam, Yogi and AMSGrad.

Reddi et al., Adaptive federated optimization, ICLR 2021, Algorithm 2. As there, second moments start at `initial`, and
no bias is corrected; `bias_correction` does that as Kingma and Ba do for Adam.
"""

from __future__ import annotations

from abc import abstractmethod

from raysim.algorithms.rules.rule import ServerRule
from raysim.algorithms.signatures import Tensor
from raysim.parts.part import Decay, NonNegative, Positive
from raysim.terms import Record


class AdaptiveRule(ServerRule):
    """m = beta1 m + (1 - beta1) direction, w = w + lr m / (sqrt(v) + eps). A subclass says how v changes."""

    lr: Positive = 0.01
    """Learning rate of the server (eta)."""
    beta1: Decay = 0.9
    """Decay of the running mean of directions."""
    eps: Positive = 1e-3
    """Added to the root in the denominator (tau): the larger, the less adaptive the steps."""
    initial: NonNegative | None = None
    """Value that v starts with. null: eps squared, the least that Reddi et al. allow."""

    def init(self, w: Tensor) -> Record:
        start = self.eps**2 if self.initial is None else self.initial
        return {"first": w * 0, "second": w * 0 + start, "steps": w.new_zeros(())}

    @abstractmethod
    def second(self, v: Tensor, square: Tensor) -> Tensor:
        """Returns the next second moment. square: of the direction, in each coordinate."""

    def moments(self, kept: Record, square: Tensor) -> Record:
        """Returns the next second moment and, if the rule divides by the root of something else, that as `largest`."""
        return {"second": self.second(kept["second"], square)}

    def move(self, kept: Record, w: Tensor, direction: Tensor, lr: float) -> tuple[Tensor, Record]:
        first = self.beta1 * kept["first"] + (1 - self.beta1) * direction
        moments, steps = self.moments(kept, direction.square()), kept["steps"] + 1
        mean, root = self.unbiased(first, moments.get("largest", moments["second"]).sqrt(), steps)
        return w + lr * mean / (root + self.eps), {"first": first, **moments, "steps": steps}

    def unbiased(self, mean: Tensor, root: Tensor, steps: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the mean and the root with their bias towards 0 corrected, if the rule does that."""
        return mean, root
