"""How a server moves its model along a direction that clients' updates give. To add a rule, put it into `RULES`.

Reddi, Charles, Zaheer, Garrett, Rush, Konecny, Kumar, McMahan, Adaptive federated optimization, ICLR 2021.
"""

from abc import abstractmethod
from typing import Annotated, Literal

from raysim.algorithms.signatures import Record, Tensor
from raysim.parts.part import Decay, NonNegative, OneOf, Positive
from raysim.schedules import Schedulable


class ServerRule(Schedulable):
    """A rule by which a server moves. A subclass adds its `name`.

    The direction is a step's aggregated update, and takes the place of the negative gradient. BatchNorm's statistics
    are not moved by rules.
    """

    name: str
    lr: Positive = 1.0
    """Learning rate of the server (eta)."""
    delay_adaptive: Literal["none", "scaled", "capped"] = "none"
    """How a step's learning rate depends on tau, the largest staleness of its updates. none: it is `lr`. scaled: lr /
    tau if tau is above `delay_threshold`, else lr. capped: min(lr, 1 / tau). See FADAS (Wang et al. 2024), which
    counts staleness in server steps; a rule that steps by rounds needs `world.staleness: versions` for that."""
    delay_threshold: NonNegative = 1.0
    """Largest tau at which `delay_adaptive: scaled` leaves the learning rate as it is."""

    def init(self, w: Tensor) -> Record:
        """Returns what the rule keeps from one step to the next, at first. w: the parameters that it moves, (d,)."""
        return {}

    @abstractmethod
    def move(self, kept: Record, w: Tensor, direction: Tensor, lr: float) -> tuple[Tensor, Record]:
        """Returns the next parameters, (d,), and what the rule keeps next.

        kept: what `init` or the last move returned. direction: where to move, (d,). lr: the learning rate of this
        step, as `rate` gives it.
        """

    def rate(self, staleness: float) -> float:
        """Returns the learning rate of a step. staleness: the largest among its updates."""
        if self.delay_adaptive == "scaled" and staleness > self.delay_threshold:
            return self.lr / staleness
        if self.delay_adaptive == "capped" and staleness > 0:
            return min(self.lr, 1 / staleness)
        return self.lr


class ServerSGD(ServerRule):
    """v = momentum v + direction, w = w + lr v. By default, the server adds the direction to its model."""

    name: str = "sgd"
    momentum: Decay = 0.0
    """Decay of the sum of directions. 0: the server keeps no such sum."""
    nesterov: bool = False
    """Whether to step along direction + momentum v instead of v."""

    def init(self, w: Tensor) -> Record:
        return {"velocity": w * 0} if self.momentum else {}

    def move(self, kept: Record, w: Tensor, direction: Tensor, lr: float) -> tuple[Tensor, Record]:
        after: Record = {}
        if self.momentum:
            velocity = self.momentum * kept["velocity"] + direction
            direction = direction + self.momentum * velocity if self.nesterov else velocity
            after = {"velocity": velocity}
        return w.add(direction, alpha=lr), after


class AdaptiveRule(ServerRule):
    """m = beta1 m + (1 - beta1) direction, w = w + lr m / (sqrt(v) + eps). A subclass says how v changes.

    Reddi et al. 2021, Algorithm 2, which starts v at `initial` and corrects no bias.
    """

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


class ServerAdagrad(AdaptiveRule):
    """v = v + direction^2 (Reddi et al. 2021, FedAdagrad)."""

    name: str = "adagrad"
    beta1: Decay = 0.0
    """Decay of the running mean of directions. 0, as in Reddi et al.: a step follows its own direction alone."""

    def second(self, v: Tensor, square: Tensor) -> Tensor:
        return v + square


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


class ServerYogi(ServerAdam):
    """v = v - (1 - beta2) direction^2 sign(v - direction^2) (Reddi et al. 2021, FedYogi)."""

    name: str = "yogi"

    def second(self, v: Tensor, square: Tensor) -> Tensor:
        return v - (1 - self.beta2) * square * (v - square).sign()


class ServerAMSGrad(ServerAdam):
    """Adam that divides by the root of the largest second moment so far (Reddi, Kale, Kumar, ICLR 2018)."""

    name: str = "amsgrad"
    eps: Positive = 1e-8
    """Added to the root in the denominator."""
    initial: NonNegative | None = 0.0
    """Value that v starts with. null: eps squared."""

    def init(self, w: Tensor) -> Record:
        return {**super().init(w), "largest": w * 0}

    def moments(self, kept: Record, square: Tensor) -> Record:
        second = self.second(kept["second"], square)
        return {"second": second, "largest": second.maximum(kept["largest"])}


RULES: tuple[type[ServerRule], ...] = (ServerSGD, ServerAdagrad, ServerAdam, ServerYogi, ServerAMSGrad)
Rule = Annotated[ServerRule, OneOf(RULES)]
