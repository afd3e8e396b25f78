"""Pairs what a module returns with labels: the losses of data, and what metrics count. Importing it loads no torch."""

from collections.abc import Callable

from raysim.data.dataset import IGNORED
from raysim.parts.lazy import F
from raysim.terms import Tensor


def predicted(output: Tensor, target: Tensor) -> Tensor:
    """Returns the logits or features that the labels belong to, with the classes on the last axis.

    Those are all of them; or, for text (n, length, ...) with one label for each sample, those of the last place. For
    pixels with a label each, (n, height, width), they are given with the classes first: (n, classes, height, width).
    """
    if target.ndim == 3 and output.ndim == 4:
        return output.movedim(1, -1)
    return output[:, -1] if output.ndim == target.ndim + 2 else output


def by_target(output: Tensor, target: Tensor) -> Tensor:
    """Returns predictions in the shape of their targets: (n, 1) - (n,) would broadcast to (n, n)."""
    return output.reshape(target.shape)


def per_label(output: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Returns an output for each label, (n, classes), and the labels, (n,); or predictions and targets, both (n, ...).

    Where samples have several labels, those that are ignored are left out.
    """
    if target.is_floating_point():
        return by_target(output, target), target
    outputs, labels = predicted(output, target).flatten(0, target.ndim - 1), target.flatten()
    if target.ndim == 1:
        return outputs, labels
    counts = labels != IGNORED
    return outputs[counts], labels[counts]


def counted(target: Tensor) -> int:
    """Returns how many labels or targets a mean over a batch counts."""
    if target.is_floating_point() or target.ndim == 1:
        return target.numel()
    return int((target != IGNORED).sum())


def hits(output: Tensor, target: Tensor) -> Tensor:
    """Returns which labels are predicted, in their shape. One of several labels, 0 or 1, is predicted for itself."""
    if target.is_floating_point():
        logits = by_target(output, target)
        return ((logits > 0) == (target > 0.5)) & ~logits.isnan()
    best, label = predicted(output, target).max(-1)  # of NaN and others it is NaN, with a label, often 0; -100 is none
    return (label == target) & ~best.isnan()


def quadratic(output: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The loss of the data set `quadratic`, whose module returns losses already."""
    return output.mean() if reduction == "mean" else output.sum()


def squared_error(output: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Half the squared error. output: (n, 1) or (n,) for a target (n,), or like a target (n, targets)."""
    return F.mse_loss(by_target(output, target), target, reduction=reduction) / 2


def binary_cross_entropy(output: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Cross-entropy of a logit for each of several labels, (n, labels), and target, 0 or 1 for each of them."""
    return F.binary_cross_entropy_with_logits(by_target(output, target), target, reduction=reduction)


def cross_entropy(output: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Cross-entropy of logits (n, labels) and labels (n,). Where a sample has several labels, those of -100 do not
    count, and logits are as `predicted` takes them."""
    output = predicted(output, target)
    if output.ndim > 2:
        output, target = output.flatten(0, -2), target.flatten()
    return F.cross_entropy(output, target, reduction=reduction)


LossFunction = Callable[..., Tensor]  # from outputs, targets and, where asked for, embeddings to a 0-d loss
LOSSES: dict[str, Callable[..., Tensor]] = {
    "cross_entropy": cross_entropy,
    "binary_cross_entropy": binary_cross_entropy,
    "squared_error": squared_error,
    "quadratic": quadratic,
}
