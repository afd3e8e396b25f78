"""Turns records into numpy arrays, which Ray shares between workers without copying, and back."""

from __future__ import annotations

import warnings

import torch

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
