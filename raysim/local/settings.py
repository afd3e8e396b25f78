"""The settings of local training."""

from typing import Literal, Self

from pydantic import model_validator

from raysim.parts.part import Count, Decay, Epochs, Fraction, NonNegative, Positive, Samples
from raysim.schedules import Schedulable


class Local(Schedulable):
    """How a client or peer trains on its own samples. Each training starts a fresh optimiser."""

    optimizer: Literal["sgd", "adam"] = "sgd"
    """The optimiser."""
    lr: Positive = 0.1
    """Learning rate."""
    momentum: Fraction = 0.0
    """Heavy-ball momentum of `sgd`, as in torch.optim.SGD without dampening. 0: none."""
    betas: tuple[Decay, Decay] = (0.9, 0.999)
    """Decay of the running means of the gradient and of its square in `adam`."""
    eps: Positive = 1e-8
    """Added to the root in the denominator of `adam`."""
    weight_decay: NonNegative = 0.0
    """This times the parameters is added to the gradient. 0: none."""
    sam: NonNegative = 0.0
    """Radius of sharpness-aware steps: each gradient is taken at a point so far uphill from w, which costs a second
    forward and backward pass. 0: plain steps."""
    epochs: Epochs = 1
    """Passes through the samples in one training."""
    steps: Count | None = None
    """Mini-batches in one training, whatever `epochs` says. null: as many as `epochs` makes."""
    batch_size: Samples | None = 32
    """Samples in a mini-batch. null: all samples at once, in order."""
    drop_last: bool = False
    """Whether to leave out an epoch's last mini-batch if it is smaller, unless it is the only one."""

    @model_validator(mode="after")
    def _of_its_optimizer(self) -> Self:
        other, keys = ("adam", ("betas", "eps")) if self.optimizer == "sgd" else ("sgd", ("momentum",))
        for key in keys:
            if (value := getattr(self, key)) != type(self).model_fields[key].default:
                raise ValueError(f"{key} goes with optimizer {other}, got {value} with {self.optimizer}; leave it out")
        return self

    @property
    def plain(self) -> bool:
        """Whether a step is w <- w - lr * gradient, and nothing else."""
        return self.optimizer == "sgd" and not (self.momentum or self.weight_decay or self.sam)

    def for_epochs(self, epochs: int) -> Self:
        """Returns these settings with another number of epochs, and without `steps`."""
        return self.model_copy(update={"epochs": epochs, "steps": None})

    def batches(self, samples: int) -> int:
        """Returns how many mini-batches an epoch has."""
        size = min(self.batch_size or samples, samples)
        return max(samples // size, 1) if self.drop_last else -(-samples // size)

    def total_steps(self, samples: int) -> int:
        """Returns how many mini-batches one training has."""
        return self.steps if self.steps is not None else self.epochs * self.batches(samples)

    def total_samples(self, samples: int) -> int:
        """Returns how many samples pass through the network in one training, with repeats and second passes."""
        passes = 2 if self.sam else 1
        if self.batch_size is None or self.batch_size >= samples:
            return passes * self.total_steps(samples) * samples
        rest = 0 if self.drop_last else samples % self.batch_size
        epochs, steps = divmod(self.total_steps(samples), self.batches(samples))
        return passes * (epochs * (samples - samples % self.batch_size + rest) + steps * self.batch_size)
