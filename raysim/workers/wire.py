"""Turns records into numpy arrays, which Ray shares between workers without copying, and back; and the server's
state into values, one for each entry. What its message carries, too, is not stored twice."""

from __future__ import annotations

import warnings
from typing import TypeAlias

import numpy as np
import torch

from actors import Value
from raysim.models.layout import ALIGNMENT
from raysim.terms import Record, Wire

# Arrays in Ray's object store are read-only, but torch can write to them; `returned.calling` notices that.
warnings.filterwarnings("ignore", message="The given NumPy array is not writable")


def send(record: Record) -> Wire:
    """Returns a record as arrays, which may share memory with the tensors."""
    return {key: torch.as_tensor(value).detach().cpu().numpy() for key, value in record.items()}


def receive(wire: Wire, device: torch.device) -> Record:
    """Returns a record as tensors that are copies.

    It copies for two reasons: other workers see the memory of the object store, and results of BLAS can depend on
    alignment, which is 64 bytes only in memory that torch has allocated.
    """
    return {key: torch.tensor(value, device=device) for key, value in wire.items()}


def borrow(wire: Wire, device: torch.device) -> Record:
    """Returns a record as tensors that must not be changed.

    On a CPU they share the arrays' memory, if that is aligned like torch's own. So this saves the copy of `receive`.
    """
    if device.type != "cpu":
        return receive(wire, device)
    return {
        key: torch.tensor(value) if value.ctypes.data % (4 * ALIGNMENT) else torch.from_numpy(value)
        for key, value in wire.items()
    }


# --- the server's state between steps ---------------------------------------------------------------------------------

StateValues: TypeAlias = "dict[str, Value[np.ndarray | Wire]]"
"""Each entry of the server's state. The message that goes with it is a value of its own."""

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
            stored[name] = Value(send({name: entry})[name])
    return stored


def load(values: StateValues, message: Wire) -> Wire:
    """Returns a stored state, whose arrays must not be changed. message: the one that goes with it."""
    arrays = {name: _array(value) for name, value in values.items()}
    return {name: message[name] if array is None else array for name, array in arrays.items()}


def _array(value: Value[np.ndarray | Wire]) -> np.ndarray | None:
    """Returns the array that an entry was stored as; None if the message carries it."""
    return None if isinstance(value.content, dict) else value.content
