"""Checks of what the methods of an algorithm were given and what they returned."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from raysim.laws.law import Broken
from raysim.terms import Record, ServerStep


class Call(NamedTuple):
    """One call of a method: records that it was given, copies of them made before, and all that it returned."""

    where: str  # class and method, and which call it was
    given: tuple[Record, ...]
    before: tuple[Record, ...]
    returned: tuple[Any, ...]
    again: tuple[Any, ...]  # what the same call returned a second time

    @property
    def records(self) -> list[Record]:
        """The records among what was returned."""
        return [value for value in self.returned if isinstance(value, dict)]


def copied(record: Record) -> Record:
    """Returns a record with copies of its tensors."""
    return {key: value.clone() for key, value in record.items()}


def require_record(where: str, value: Any, what: str) -> Record:
    """Returns a record as it is. Raises Broken for anything but a dict of tensors."""
    if not isinstance(value, dict):
        raise Broken(f"{where}: must return {what}, a dict of tensors, got {value!r}")
    for key, entry in value.items():
        if not isinstance(entry, Tensor):
            raise Broken(f"{where}: {key!r} of {what} must be a tensor, got {entry!r}")
    return value


def state_of(step: Any) -> Any:
    """Returns the state in the result of a server step, which may be a ServerStep."""
    return step.state if isinstance(step, ServerStep) else step


def shapes(record: Record) -> dict[str, str]:
    """Returns each entry's type and shape, in words."""
    return {key: f"{str(v.dtype).removeprefix('torch.')} {tuple(v.shape)}" for key, v in record.items()}


def require_unchanged(calls: list[Call]) -> None:
    """Raises Broken if a call changed a record that it was given."""
    for call in calls:
        for given, before in zip(call.given, call.before, strict=True):
            for key, value in before.items():
                if key not in given or not _equal(given[key], value):
                    raise Broken(f"{call.where}: must not change what it is given, but changed {key!r}; copy it first")


def require_equal_again(calls: list[Call]) -> None:
    """Raises Broken if a call that was made twice returned other values the second time."""
    for call in calls:
        for one, other in zip(call.returned, call.again, strict=True):
            if not _equal(one, other):
                text = "must return the same for the same arguments, got other values from a second call"
                raise Broken(f"{call.where}: {text}; draw nothing without a key, and keep nothing outside of states")


def require_finite(calls: list[Call]) -> None:
    """Raises Broken if a call returned numbers that are not finite."""
    for call in calls:
        for record in call.records:
            for key, value in record.items():
                if value.is_floating_point() and not bool(torch.isfinite(value).all()):
                    raise Broken(f"{call.where}: {key!r} must be finite, got {value[~torch.isfinite(value)][:3]}")


def require_shapes(where: str, got: Record, like: Record, what: str, *, grows: bool = False) -> None:
    """Raises Broken unless a record has the entries of another, with their shapes and types.

    grows: whether entries that are empty there may have any shape, and whether entries may be left out.
    """
    expected, found = shapes(like), shapes(got)
    if grows:
        found = {key: expected[key] if key in like and not like[key].numel() else kept for key, kept in found.items()}
        expected = {key: expected[key] for key in expected if key in found}
    if found != expected:
        differing = {key: found.get(key, "nothing") for key in found.keys() | expected.keys()}
        wrong = {key: kept for key, kept in differing.items() if kept != expected.get(key)}
        kept = {key: expected.get(key, "nothing") for key in wrong}
        raise Broken(f"{where}: {what} must keep its entries, shapes and types: {kept}, got {wrong}")


def _equal(one: Any, other: Any) -> bool:
    one, other = state_of(one), state_of(other)
    if isinstance(one, Tensor):
        alike = isinstance(other, Tensor) and one.shape == other.shape and one.dtype == other.dtype
        return alike and bool(((one == other) | (one.isnan() & other.isnan())).all())
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(_equal(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple | int | float | type(None)):
        return bool(one == other)
    return True  # a model or a function, whose predictions are compared elsewhere
