"""Records as they travel: numpy arrays, which Ray shares without copying."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
import torch

from raysim.models.layout import ALIGNMENT
from raysim.terms import Record

Wire: TypeAlias = "dict[str, np.ndarray]"

# Of arrays in the object store, which torch could write to all the same: `unchanged` sees that nobody does.
warnings.filterwarnings("ignore", message="The given NumPy array is not writable")


def send(record: Record) -> Wire:
    """To arrays, which may share memory with the tensors."""
    return {key: torch.as_tensor(value).detach().cpu().numpy() for key, value in record.items()}


def receive(wire: Wire, device: torch.device) -> Record:
    """To tensors of their own.

    A copy, for two reasons: what comes from the object store is memory that others see, and results of BLAS can depend
    on alignment, which is 64 bytes in torch's own memory only.
    """
    return {key: torch.tensor(value, device=device) for key, value in wire.items()}


def borrow(wire: Wire, device: torch.device) -> Record:
    """To tensors that are read only: on a CPU they are the arrays' own memory, where that is aligned as torch's is."""
    if device.type != "cpu":
        return receive(wire, device)
    return {
        key: torch.tensor(value) if value.ctypes.data % (4 * ALIGNMENT) else torch.from_numpy(value)
        for key, value in wire.items()
    }


def unchanged(records: Iterable[Record]) -> None:
    """Raises ValueError if a tensor was changed in place since it was received or borrowed, in which others see it."""
    for record in records:
        for key, value in record.items():
            if value._version:
                raise ValueError(
                    f"what an algorithm is given must not be changed in place, as {key!r} was; copy it first"
                )
