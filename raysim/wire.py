"""Records as they travel: numpy arrays, which Ray shares without copying."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from raysim.algorithms import Record
from raysim.models.layout import Layout

Wire: TypeAlias = "dict[str, np.ndarray]"


def send(record: Record) -> Wire:
    """To arrays, which may share memory with the tensors."""
    return {key: value.detach().cpu().numpy() for key, value in record.items()}


def receive(wire: Wire, device: torch.device) -> Record:
    """To tensors of their own.

    A copy, for two reasons: what comes from the object store is memory that others see, and results of BLAS can depend
    on alignment, which is 64 bytes in torch's own memory only.
    """
    return {key: torch.tensor(value, device=device) for key, value in wire.items()}


def size(record: Record, layout: Layout) -> int:
    """Bytes of a record on a network, without the padding of the flat vector."""
    padding = 4 * (layout.size - layout.parameters)
    padded = (layout.size, layout.cut) if layout.cut < layout.size else ()
    return sum(v.numel() * v.element_size() - (padding if v.numel() in padded else 0) for v in record.values())


def weighted_sum(records: list[Record], weights: list[float]) -> Record:
    """sum_i weights[i] records[i], entry by entry, in the order of the list."""
    total = {key: value * weights[0] for key, value in records[0].items()}
    for record, weight in zip(records[1:], weights[1:], strict=True):
        for key, value in record.items():
            total[key].add_(value, alpha=weight)
    return total


def stack(records: list[Record]) -> Record:
    """With a leading axis: (n, ...)."""
    return {key: torch.stack([record[key] for record in records]) for key in records[0]}


def merge(chunks: list[Record], summed: bool) -> Record:
    """What chunks of a step give together: their sum, in their order, or one below the other."""
    if summed:
        return weighted_sum(chunks, [1.0] * len(chunks)) if chunks else {}
    return {key: torch.cat([chunk[key] for chunk in chunks]) for key in chunks[0]} if chunks else {}


def scalar(value: Tensor | None) -> float | None:
    return None if value is None else float(value)
