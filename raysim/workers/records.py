"""Records as workers handle them: their size on a network, sums and stacks of them, parts of them."""

from __future__ import annotations

import torch

from raysim.models.layout import Layout
from raysim.terms import Record


def size(record: Record, layout: Layout) -> int:
    """Bytes of a record on a network, without the padding of the flat vector."""
    padding = 4 * (layout.size - layout.parameters)
    padded = (layout.size, layout.cut) if layout.cut < layout.size else ()
    return sum(v.numel() * v.element_size() - (padding if v.numel() in padded else 0) for v in record.values())


class Total:
    """sum_i weight_i record_i, entry by entry, in the order of `add`; empty before the first."""

    def __init__(self) -> None:
        self.record: Record = {}

    def add(self, record: Record, weight: float) -> None:
        """Does not keep the record, nor changes it."""
        for key, value in record.items():
            if key in self.record:
                self.record[key].add_(value, alpha=weight)
            else:
                self.record[key] = value * weight


class Stack:
    """Records one below the other, each entry with a leading axis (n, ...)."""

    def __init__(self) -> None:
        self._records: list[Record] = []

    def add(self, record: Record, weight: float) -> None:
        """weight: not used."""
        self._records.append(record)

    @property
    def record(self) -> Record:
        first = self._records[0] if self._records else {}
        return {key: torch.stack([record[key] for record in self._records]) for key in first}


def merge(chunks: list[Record], summed: bool) -> Record:
    """What chunks of a step give together: their sum, in their order, or one below the other; {} of none."""
    if summed:
        total = Total()
        for chunk in chunks:
            total.add(chunk, 1.0)
        return total.record
    return {key: torch.cat([chunk[key] for chunk in chunks]) for key in (chunks[0] if chunks else {})}


def scale(record: Record, weight: float) -> Record:
    """Weight times the record, entry by entry."""
    return {key: value * weight for key, value in record.items()}


def split(record: Record, *keys: str) -> tuple[Record, Record]:
    """The record without some entries, and those of them that it has."""
    rest = {key: value for key, value in record.items() if key not in keys}
    return rest, {key: record[key] for key in keys if key in record}
