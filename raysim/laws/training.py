"""The laws of what training takes: optimisers, schedules, metrics and losses, and transforms of what clients send."""

import torch
from torch import Tensor

from raysim.laws.runs import RUNS
from raysim.laws.subject import Broken, Groups, Subject
from raysim.parts.part import is_number
from raysim.schedules.schedule import TINY
from raysim.terms import Moment, Record
from raysim.uplink.channel import Channel
from raysim.uplink.uplink import Size, Uplink, UplinkPoint

STEPS = 50
POSITIONS = [0.0, 0.5, *map(float, range(1, 12))]


# --- optimisers -------------------------------------------------------------------------------------------------------


def states_are_like_parameters(subject: Subject) -> None:
    """`init` returns vectors like w."""
    w = torch.ones(8)
    for name, vector in subject.made.init(w).items():
        if getattr(vector, "shape", None) != w.shape:
            raise Broken(f"init: must return vectors of shape (8,) like w, got {vector!r} for {name!r}")


def steps_move_parameters(subject: Subject) -> None:
    """`move` changes w in place, if not in every step, and keeps the entries of the state, and all stays finite."""
    w = torch.linspace(0, 1, 8)  # of all lengths, so that small steps show
    before, gradient, state = w.clone(), torch.ones(8), subject.made.init(w)
    entries = sorted(state)
    for taken in range(STEPS):
        subject.made.move(w, gradient.clone(), state, 0.01, taken)
        if sorted(state) != entries:
            raise Broken(f"move, step {taken}: must keep the entries {entries} of the state, got {sorted(state)}")
        if not all(bool(torch.isfinite(vector).all()) for vector in (w, *state.values())):
            raise Broken(f"move, step {taken}: must leave w and the state finite, and does not")
    if torch.equal(w, before):
        raise Broken(f"move: must change w in place, as w.add_(...) does, and leaves it as it was in {STEPS} steps")


# --- schedules --------------------------------------------------------------------------------------------------------


def values_are_within_their_bounds(subject: Subject) -> None:
    """`curve` returns finite numbers between those of `values`, the same each time that it is asked for."""
    low, high = sorted(subject.made.values)
    low = 0.0 if low == TINY else low  # which it may come to at the end
    for position in POSITIONS:
        one, other = (subject.made.curve(position) for _ in range(2))
        if not is_number(one) or not low <= one <= high:
            raise Broken(f"curve, at {position:g}: must be within `values`, {low:g} to {high:g}, got {one!r}")
        if one != other:
            raise Broken(f"curve, at {position:g}: must be the same each time, got {one:g} and {other:g}")


OPTIMIZER: Groups = ((states_are_like_parameters,), (steps_move_parameters,), *RUNS)
SCHEDULE: Groups = ((values_are_within_their_bounds,), *RUNS)


ORDERS = 10  # of samples, that are tried
SAMPLES, CLASSES = 40, 10  # classes where the data do not say how many there are


def outputs_and_labels(subject: Subject) -> tuple[Tensor, Tensor]:
    """Returns outputs of a model and labels as the part needs them: logits and labels, or predictions and targets."""
    draw = torch.Generator().manual_seed(0)
    if subject.made.needs == "targets":
        return torch.randn(SAMPLES, generator=draw), torch.randn(SAMPLES, generator=draw)
    if subject.made.needs == "several labels":
        shape = (SAMPLES, CLASSES)
        return torch.randn(shape, generator=draw), torch.randint(2, shape, generator=draw).float()
    classes = subject.scenario.data.classes or CLASSES
    outputs, labels = torch.randn(SAMPLES, classes, generator=draw), torch.randint(classes, (SAMPLES,), generator=draw)
    outputs[range(SAMPLES), labels] += 1  # so that some are right
    return outputs, labels


def the_same_in_any_order(subject: Subject) -> None:
    """It does not depend on the order of samples, but for rounding."""
    outputs, labels = subject.made.reduced(*outputs_and_labels(subject))
    one = subject.made.value(outputs, labels)
    for seed in range(ORDERS):
        order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
        other = subject.made.value(outputs[order], labels[order])
        alike = one is other is None
        if one is not None and other is not None:
            alike = abs(one - other) <= 1e-4 * max(1.0, abs(one))
        if not alike:
            raise Broken(f"compute: must be the same for samples in another order, got {one} and {other}")


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


METRIC: Groups = (*RUNS, (the_same_in_any_order,))
LOSS: Groups = ((a_loss_for_each_sample,), (it_has_gradients,), *RUNS)


SHAPES = ((8, 5), (24,))
DRAWS = 2000  # of which the mean is taken


def _sent(subject: Subject, vector: Tensor, key: int = 0) -> tuple[Tensor, Record]:
    transform: Uplink = subject.made.at(Moment())
    draw = torch.Generator().manual_seed(key)
    passed = transform.send(vector, transform.first(len(vector)), UplinkPoint(Size.dense(SHAPES), draw, 1.0))
    return passed.vector, passed.kept


def _vector(key: int = 1) -> Tensor:
    return torch.randn(64, generator=torch.Generator().manual_seed(key))


def it_returns_a_vector_of_the_same_shape(subject: Subject) -> None:
    """`send` returns a vector of the shape and type that it was given, and leaves that as it was."""
    given = _vector()
    sent, _ = _sent(subject, given)
    if sent.shape != given.shape or sent.dtype != given.dtype:
        raise Broken(f"send: must return float32 of shape {tuple(given.shape)}, got {sent.dtype} {tuple(sent.shape)}")
    if not torch.equal(given, _vector()):
        raise Broken("send: must not change in place what it is given; copy it first, with clone()")


def zero_and_what_is_not_finite_pass(subject: Subject) -> None:
    """A vector of zeros gives no NaN, and a vector with NaN gives NaN, so that divergence is seen."""
    if not bool(torch.isfinite(_sent(subject, torch.zeros(64))[0]).all()):
        raise Broken("send: must return finite numbers for zeros, and does not; look for a division by zero")
    with_nan = _vector()
    with_nan[3] = torch.nan
    if not bool(_sent(subject, with_nan)[0].isnan().any()):
        raise Broken("send: must return NaN where it is given NaN, got finite numbers; a run could not see the fault")


def it_sends_no_more_than_it_says(subject: Subject) -> None:
    """`size` gives bytes for a vector, at least 0, and `send` leaves no more numbers than that says."""
    size = subject.made.at(Moment()).size(Size.dense(SHAPES))
    sent, _ = _sent(subject, _vector())
    if not isinstance(size, Size) or size.bytes < 0:
        raise Broken(f"size: must return a Size of 0 bytes or more, got {size!r}")
    if (found := int(sent.count_nonzero())) > size.values:
        raise Broken(f"size: must count what is sent, {found} numbers that are not zero, got {size.values} values")


def draws_follow_the_key(subject: Subject) -> None:
    """`send` gives the same for the same vector, state and key."""
    for key in range(3):
        (one, _), (other, _) = _sent(subject, _vector(), key), _sent(subject, _vector(), key)
        if not torch.equal(one, other):
            raise Broken("send: must draw from `at.draw` only, got other numbers when it was called again")


def the_mean_is_right(subject: Subject) -> None:
    """Where it says that it is unbiased, the mean over draws is the vector, but for 5 standard errors."""
    if not subject.made.at(Moment()).unbiased:
        return
    given = _vector()
    sent = torch.stack([_sent(subject, given, key)[0] for key in range(DRAWS)])
    errors = (sent.mean(0) - given).abs() / (sent.std(0) / DRAWS**0.5 + 1e-6)
    if (most := float(errors.max())) > 5:
        raise Broken(f"send: must be right in the mean, as `unbiased` says, is off by {most:.0f} standard errors")


def norms_obey_the_stretch(subject: Subject) -> None:
    """No vector becomes longer than `stretch` says, if it says anything."""
    transform: Uplink = subject.made.at(Moment())
    if (most := transform.stretch(64)) is None:
        return
    for key in range(20):
        given = _vector(key)
        ratio = float(_sent(subject, given, key)[0].norm() / given.norm())
        if ratio > most * 1.0001:
            raise Broken(f"send: must lengthen no vector by more than stretch says, {most:g}, got {ratio:g}")


def a_memory_loses_nothing(subject: Subject) -> None:
    """With ef14, what was sent and what is remembered add up to what came in."""
    transform: Uplink = subject.made.at(Moment())
    if not transform.remembers or getattr(transform, "memory", "ef14") != "ef14" or transform.kind != "codec":
        return
    kept: dict[int, Record] = {}
    came = sent = torch.zeros(64)
    for key in range(5):
        draw = torch.Generator().manual_seed
        found = Channel("uplink", {0: transform}, SHAPES)(_vector(key), kept, draw)
        came, sent, kept = came + _vector(key), sent + found.vector, found.kept
    left = came - sent - (0.0 if found.memory is None else found.memory)
    if getattr(transform, "decay", 1.0) == 1.0 and float(left.abs().max()) > 1e-4:
        raise Broken(f"send: what is sent and remembered must add up to what came in, is off by {left.abs().max():g}")


UPLINK: Groups = (
    (it_returns_a_vector_of_the_same_shape,),
    (zero_and_what_is_not_finite_pass, it_sends_no_more_than_it_says, draws_follow_the_key),
    (norms_obey_the_stretch, the_mean_is_right, a_memory_loses_nothing),
    *RUNS,
)
