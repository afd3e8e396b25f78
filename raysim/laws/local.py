"""The laws of what local training takes besides losses: optimisers, and schedules of numbers."""

import torch

from raysim.laws.law import Broken, Groups
from raysim.laws.runs import RUNS
from raysim.laws.subject import Subject
from raysim.parts.part import is_number
from raysim.schedules.schedule import TINY

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
