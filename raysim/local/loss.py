"""The losses that `run.loss` can name. Importing this file does not load torch."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from pydantic import Field

from raysim.local.outputs import per_label
from raysim.parts.errors import BadInput
from raysim.parts.lazy import F
from raysim.parts.own_function import Arguments, ImportPath, call, find, problems_of
from raysim.parts.part import Fraction, NonNegative, Part, Positive
from raysim.terms import Tensor


class TrainingLoss(Part):
    """A loss of each sample. A subclass adds its `name`."""

    needs: ClassVar[str | None] = "labels"
    """What the data must have: labels, several labels or targets; None: any will do."""

    name: str

    @property
    def mixes(self) -> bool:
        """Whether it also takes mixed labels, (n, classes) float32: the share of each label in a sample."""
        return False

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yields (key, what is wrong with it), whatever the data are."""
        yield from ()

    @abstractmethod
    def each(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Returns the loss of each sample, (n,).

        outputs: (n, classes), or (n,) of data without labels. labels: (n,) int64, or targets (n,) float32.
        """

    def __call__(self, output: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
        """Returns the mean or the sum of the losses, 0-d. Raises ValueError if `each` gives another shape, or losses
        that have no gradient where the outputs have one.

        output, target: as of a module and its data; text has an output and maybe a label at each place.
        """
        outputs, labels = per_label(output, target)
        losses = self.each(outputs, labels)
        shape = labels.shape[:1] if self.mixes else labels.shape
        if getattr(losses, "shape", None) != shape:
            got = f"shape {tuple(losses.shape)}" if hasattr(losses, "shape") else repr(losses)
            text = f"must give a loss for each sample, shape {tuple(shape)}, got {got}; do not average them"
            raise BadInput("run.loss", text)
        if output.requires_grad and not losses.requires_grad:
            raise BadInput("run.loss", "must give losses that have a gradient, got some without; do not detach outputs")
        return losses.mean() if reduction == "mean" else losses.sum()


def weighted(losses: Tensor, labels: Tensor, outputs: Tensor, weights: tuple[float, ...]) -> Tensor:
    """Returns losses (n,) times the weights of their labels. Raises ValueError unless each label has one."""
    if not weights:
        return losses
    if len(weights) != outputs.shape[1]:
        got = f"one for each of {outputs.shape[1]} labels, got {len(weights)}"
        raise ValueError(f"run.loss: class_weights must be {got}")
    return losses * losses.new_tensor(weights)[labels]


class CrossEntropy(TrainingLoss):
    """Cross-entropy of logits and labels, which may be smoothed."""

    name: str = "cross_entropy"
    label_smoothing: Fraction = 0.0
    """Probability that is taken from the label and spread evenly over all labels (Szegedy et al., CVPR 2016)."""
    class_weights: tuple[NonNegative, ...] = ()
    """Factor of the loss of each label's samples; the mean is over samples. []: 1 for all."""

    @property
    def mixes(self) -> bool:
        return not self.class_weights

    def each(self, outputs: Tensor, labels: Tensor) -> Tensor:
        losses = F.cross_entropy(outputs, labels, reduction="none", label_smoothing=self.label_smoothing)
        return weighted(losses, labels, outputs, self.class_weights)


class Focal(TrainingLoss):
    """Focal loss, -(1 - p)^gamma log p of the label's probability p (Lin et al., ICCV 2017)."""

    name: str = "focal"
    gamma: NonNegative = 2.0
    """How much less samples count that are predicted well. 0: as in cross-entropy."""
    class_weights: tuple[NonNegative, ...] = ()
    """Factor of the loss of each label's samples (alpha); the mean is over samples. []: 1 for all."""

    def each(self, outputs: Tensor, labels: Tensor) -> Tensor:
        entropies = F.cross_entropy(outputs, labels, reduction="none")
        losses = (-(-entropies).expm1()).clamp_min(0) ** self.gamma * entropies
        return weighted(losses, labels, outputs, self.class_weights)


class BinaryCrossEntropy(TrainingLoss):
    """Cross-entropy of a logit for each of several labels, which are 0 or 1."""

    needs: ClassVar[str | None] = "several labels"

    name: str = "binary_cross_entropy"
    positive_weights: tuple[NonNegative, ...] = ()
    """Factor of the loss of each label where it is 1, such as how many times more samples do not have it; the mean is
    over samples and labels. []: 1 for all."""

    def each(self, outputs: Tensor, labels: Tensor) -> Tensor:
        if (given := len(self.positive_weights)) not in (0, labels.shape[-1]):
            raise ValueError(
                f"run.loss: positive_weights must be one for each of {labels.shape[-1]} labels, got {given}"
            )
        weights = outputs.new_tensor(self.positive_weights) if given else None
        return F.binary_cross_entropy_with_logits(outputs, labels, reduction="none", pos_weight=weights)


class OneHot(TrainingLoss):
    """Squared error between outputs and one-hot labels, the mean over labels."""

    name: str = "mse"

    def each(self, outputs: Tensor, labels: Tensor) -> Tensor:
        return (outputs - F.one_hot(labels, outputs.shape[1])).square().mean(1)


class Huber(TrainingLoss):
    """Huber loss of targets: half the squared error near zero, linear beyond."""

    needs: ClassVar[str | None] = "targets"

    name: str = "huber"
    delta: Positive = 1.0
    """Absolute error from which on the loss is linear."""

    def each(self, outputs: Tensor, labels: Tensor) -> Tensor:
        return F.huber_loss(outputs, labels, reduction="none", delta=self.delta)


class FunctionLoss(TrainingLoss):
    """A custom function, of outputs and labels; "my_module:loss" is short for it."""

    needs: ClassVar[str | None] = None

    name: str = "function"
    function: ImportPath
    """The function, such as my_module:loss. It gets the outputs of a mini-batch, (n, classes), and the labels, (n,), as
    tensors, and returns the loss of each sample, (n,)."""
    args: Arguments = Field(default_factory=dict)
    """Its other arguments, by name."""

    def problems(self) -> Iterator[tuple[str, str]]:
        return problems_of(self.function, self.args)

    def each(self, outputs: Tensor, labels: Tensor) -> Tensor:
        losses: Tensor = call(find(self.function), outputs, labels, given=self.args, offered={})
        return losses


TRAINING_LOSSES: tuple[type[TrainingLoss], ...] = (CrossEntropy, Focal, BinaryCrossEntropy, OneHot, Huber, FunctionLoss)
