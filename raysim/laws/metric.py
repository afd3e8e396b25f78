"""The laws of metrics and losses: what they return for outputs and labels."""

import torch
from torch import Tensor

from raysim.laws.law import Broken, Groups
from raysim.laws.runs import RUNS
from raysim.laws.subject import Subject

ORDERS = 10  # of samples, that are tried
SAMPLES, CLASSES = 40, 10  # classes where the data do not say how many there are


def outputs_and_labels(subject: Subject) -> tuple[Tensor, Tensor]:
    """Returns outputs of a model and labels as the part needs them: logits and labels, or predictions and targets."""
    draw = torch.Generator().manual_seed(0)
    if subject.made.needs == "targets":
        return torch.randn(SAMPLES, generator=draw), torch.randn(SAMPLES, generator=draw)
    classes = subject.scenario.data.classes or CLASSES
    outputs, labels = torch.randn(SAMPLES, classes, generator=draw), torch.randint(classes, (SAMPLES,), generator=draw)
    outputs[range(SAMPLES), labels] += 1  # so that some are right
    return outputs, labels


def it_gives_a_number(subject: Subject) -> None:
    """`compute` returns one finite number, or NaN where it is not defined."""
    try:
        found: float | None = subject.made.value(*outputs_and_labels(subject))
    except (TypeError, ValueError) as error:
        raise Broken(f"compute: {error}") from error
    if found is not None and abs(found) == float("inf"):
        raise Broken(f"compute: must return a finite number, or NaN where it is not defined, got {found}")


def the_same_in_any_order(subject: Subject) -> None:
    """It does not depend on the order of samples, but for rounding."""
    outputs, labels = outputs_and_labels(subject)
    one = subject.made.value(outputs, labels)
    for seed in range(ORDERS):
        order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
        other = subject.made.value(outputs[order], labels[order])
        alike = one is other is None
        if one is not None and other is not None:
            alike = abs(one - other) <= 1e-4 * max(1.0, abs(one))
        if not alike:
            raise Broken(f"compute: must be the same for samples in another order, got {one} and {other}")


def it_changes_nothing(subject: Subject) -> None:
    """It leaves outputs and labels as they are."""
    given = outputs_and_labels(subject)
    copies = [tensor.clone() for tensor in given]
    part = subject.made
    (part.value if hasattr(part, "value") else part.each)(*given)
    for name, tensor, copy in zip(("outputs", "labels"), given, copies, strict=True):
        if not torch.equal(tensor, copy):
            raise Broken(f"{name}: must stay as they are, but were changed; copy them first")


def a_loss_for_each_sample(subject: Subject) -> None:
    """`each` returns a finite loss for each sample, which depends on that sample alone."""
    outputs, labels = outputs_and_labels(subject)
    losses = subject.made.each(outputs, labels)
    if getattr(losses, "shape", None) != labels.shape:
        got = tuple(losses.shape) if hasattr(losses, "shape") else losses
        raise Broken(f"each: must return a loss for each sample, shape {tuple(labels.shape)}, got {got}; take no mean")
    if not bool(torch.isfinite(losses).all()):
        raise Broken("each: must return finite losses, got some that are not")
    half = subject.made.each(outputs[: SAMPLES // 2], labels[: SAMPLES // 2])
    if not torch.allclose(half, losses[: SAMPLES // 2], rtol=1e-4, atol=1e-6):
        raise Broken("each: the loss of a sample must not depend on the other samples of its batch, but does")


def it_has_gradients(subject: Subject) -> None:
    """Its gradient with respect to the outputs is finite, and not zero everywhere."""
    outputs, labels = outputs_and_labels(subject)
    loss = subject.made.each(outputs.requires_grad_(), labels).mean()
    if not loss.requires_grad:
        raise Broken("each: must be differentiable in the outputs, got a loss without a gradient; do not detach them")
    (gradient,) = torch.autograd.grad(loss, outputs)
    if not bool(torch.isfinite(gradient).all()) or not bool(gradient.any()):
        raise Broken("each: the gradient must be finite and not zero everywhere, but is not")


METRIC: Groups = ((it_gives_a_number,), (the_same_in_any_order, it_changes_nothing), *RUNS)
LOSS: Groups = ((a_loss_for_each_sample,), (it_changes_nothing, it_has_gradients), *RUNS)
