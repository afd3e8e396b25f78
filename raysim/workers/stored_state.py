"""How the server's state is stored between steps. Entries that the message carries, too, are not stored twice."""

from __future__ import annotations

import numpy as np

from actors import Value
from raysim.terms import Record, Wire
from raysim.workers import records
from raysim.workers.replies import StateValues

_IN_MESSAGE: Wire = {}  # in place of an entry that the message carries as it is, such as the model


def store(state: Record, message: Record, before: Record, values: StateValues) -> StateValues:
    """Returns a state as values.

    message: what clients are sent in this state. before, values: the state before it, and as it was stored. An entry
    that is the same tensor as before is left as the same value, so that it is not stored again.
    """
    stored: StateValues = {}
    for name, entry in state.items():
        if message.get(name) is entry:
            stored[name] = Value(_IN_MESSAGE)
        elif before.get(name) is entry and _array(values[name]) is not None:
            stored[name] = values[name]
        else:
            stored[name] = Value(records.send({name: entry})[name])
    return stored


def load(values: StateValues, message: Wire) -> Wire:
    """Returns a stored state, whose arrays must not be changed. message: the one that goes with it."""
    arrays = {name: _array(value) for name, value in values.items()}
    return {name: message[name] if array is None else array for name, array in arrays.items()}


def _array(value: Value[np.ndarray | Wire]) -> np.ndarray | None:
    """Returns the array that an entry was stored as; None if the message carries it."""
    return None if isinstance(value.content, dict) else value.content
