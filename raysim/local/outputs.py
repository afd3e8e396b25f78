"""Pairs what a module returns with labels."""

from torch import Tensor


def predicted(output: Tensor, target: Tensor) -> Tensor:
    """Returns the logits or features that the labels belong to.

    Those are all of them; or, for text (n, length, ...) with one label for each sample, those of the last place.
    """
    return output[:, -1] if output.ndim == target.ndim + 2 else output


def per_label(output: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Returns an output for each label, (n, classes), and the labels, (n,); or predictions and targets, both (n,)."""
    if target.is_floating_point():
        return output.reshape(target.shape), target  # (n, 1) - (n,) would broadcast to (n, n)
    return predicted(output, target).flatten(0, target.ndim - 1), target.flatten()
