"""The laws of transforms of what clients send."""

import torch
from torch import Tensor

from raysim.clients.uplink import Size, Uplink, UplinkPoint
from raysim.laws.law import Broken, Groups
from raysim.laws.runs import RUNS
from raysim.laws.subject import Subject
from raysim.terms import Moment, Record

LAYERS = (40, 24)


def _sent(subject: Subject, vector: Tensor, key: int = 0) -> tuple[Tensor, Record]:
    transform: Uplink = subject.made.at(Moment())
    draw = torch.Generator().manual_seed(key)
    passed = transform.send(vector, transform.first(len(vector)), UplinkPoint(LAYERS, draw))
    return passed.vector, passed.kept


def _vector(key: int = 1) -> Tensor:
    return torch.randn(sum(LAYERS), generator=torch.Generator().manual_seed(key))


def it_returns_a_vector_of_the_same_shape(subject: Subject) -> None:
    """`send` returns a vector of the shape and type that it was given, and leaves that as it was."""
    given = _vector()
    sent, _ = _sent(subject, given)
    if sent.shape != given.shape or sent.dtype != given.dtype:
        raise Broken(f"send: must return float32 of shape {tuple(given.shape)}, got {sent.dtype} {tuple(sent.shape)}")
    if not torch.equal(given, _vector()):
        raise Broken("send: must not change in place what it is given; copy it first, with clone()")


def the_same_draws_give_the_same(subject: Subject) -> None:
    """`send` returns the same for the same vector and the same generator."""
    if not torch.equal(_sent(subject, _vector())[0], _sent(subject, _vector())[0]):
        raise Broken("send: must return the same each time; draw from `at.draw`, on the CPU")


def zero_and_what_is_not_finite_pass(subject: Subject) -> None:
    """A vector of zeros gives no NaN, and a vector with NaN gives NaN, so that divergence is seen."""
    if not bool(torch.isfinite(_sent(subject, torch.zeros(sum(LAYERS)))[0]).all()):
        raise Broken("send: must return finite numbers for zeros, and does not; look for a division by zero")
    with_nan = _vector()
    with_nan[3] = torch.nan
    if not bool(_sent(subject, with_nan)[0].isnan().any()):
        raise Broken("send: must return NaN where it is given NaN, got finite numbers; a run could not see the fault")


def it_sends_no_more_than_it_says(subject: Subject) -> None:
    """`size` gives bytes for a vector, at least 0, and `send` leaves no more numbers than that says."""
    size = subject.made.at(Moment()).size(Size(LAYERS, values=sum(LAYERS)))
    sent, _ = _sent(subject, _vector())
    if not isinstance(size, Size) or size.bytes < 0:
        raise Broken(f"size: must return a Size of 0 bytes or more, got {size!r}")
    if (found := int(sent.count_nonzero())) > size.values:
        raise Broken(f"size: must count what is sent, {found} numbers that are not zero, got {size.values} values")


UPLINK: Groups = (
    (it_returns_a_vector_of_the_same_shape,),
    (the_same_draws_give_the_same, zero_and_what_is_not_finite_pass, it_sends_no_more_than_it_says),
    *RUNS,
)
