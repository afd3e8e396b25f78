"""How clients train."""

from typing import Literal, Self

from raysim.part import Count, Fraction, NonNegative, Part, Positive


class Local(Part):
    """Training on a client's own samples, with a fresh optimiser for each dispatch."""

    optimizer: Literal["sgd", "adam"] = "sgd"
    lr: Positive = 0.1
    """Learning rate."""
    momentum: Fraction = 0.0
    """Of sgd: heavy ball, as torch.optim.SGD without dampening."""
    betas: tuple[Fraction, Fraction] = (0.9, 0.999)
    """Of adam."""
    eps: Positive = 1e-8
    """Of adam."""
    weight_decay: NonNegative = 0.0
    """Times the parameters, added to the gradient."""
    sam: NonNegative = 0.0
    """Radius of sharpness-aware steps: gradients are taken so far uphill, which costs a second pass. 0: plain steps."""
    epochs: Count = 1
    """Passes through a client's samples in a dispatch."""
    steps: Count | None = None
    """So many mini-batches instead of `epochs`."""
    batch_size: Count | None = 32
    """null: all samples at once, in order."""
    drop_last: bool = False
    """Leave out an epoch's last, smaller batch, unless it is the only one."""

    def for_epochs(self, epochs: int) -> Self:
        """The same, for so many epochs, whatever `steps` says."""
        return self.model_copy(update={"epochs": epochs, "steps": None})

    def batches(self, samples: int) -> int:
        """Mini-batches an epoch."""
        size = min(self.batch_size or samples, samples)
        return max(samples // size, 1) if self.drop_last else -(-samples // size)

    def total_steps(self, samples: int) -> int:
        """Mini-batches a dispatch."""
        return self.steps if self.steps is not None else self.epochs * self.batches(samples)

    def total_samples(self, samples: int) -> int:
        """Samples that a dispatch goes through, repeats and second passes counted."""
        passes = 2 if self.sam else 1
        if self.batch_size is None or self.batch_size >= samples:
            return passes * self.total_steps(samples) * samples
        rest = 0 if self.drop_last else samples % self.batch_size
        epochs, steps = divmod(self.total_steps(samples), self.batches(samples))
        return passes * (epochs * (samples - samples % self.batch_size + rest) + steps * self.batch_size)
