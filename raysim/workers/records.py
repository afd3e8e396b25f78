"""What workers do with records: they turn them into arrays and back, store, measure, sum, stack and split them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from actors import Value
from raysim.models.layout import ALIGNMENT, Layout
from raysim.terms import ClientState, Record, Weight, Wire
from raysim.workers.replies import ClientWire, Measured, StateValues

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


def state_in(value: Value[ClientWire] | None, device: torch.device) -> ClientState[Tensor]:
    """Returns a client's state, which may be changed in place but for what transforms keep; an empty one if clients
    keep none."""
    if not value:
        return ClientState()
    _, _, up, _, down = value.content.map(partial(borrow, device=device))
    own = value.content._replace(uplink={}, downlink={}).map(partial(receive, device=device))
    return own._replace(uplink=up, downlink=down)


# --- the server's state between steps, of which entries that the message carries, too, are not stored twice ----------

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


# --- sizes, sums and stacks -------------------------------------------------------------------------------------------


def size(record: Record, layout: Layout) -> int:
    """Returns the bytes that a record takes on a network. The padding of flat vectors does not count."""
    return sum(value.element_size() * elements({key: value}, layout) for key, value in record.items())


def elements(record: Record, layout: Layout) -> int:
    """Returns how many numbers a record holds. The padding of flat vectors does not count."""
    padded = (layout.size, layout.cut) if layout.cut < layout.size else ()
    padding = layout.size - layout.parameters
    return sum(v.numel() - (padding if v.numel() in padded else 0) for v in record.values())


class Total:
    """A weighted sum of records, sum_i weight_i record_i, entry by entry, or several of them, whose entries are named
    by sum and entry, such as "step.delta". It is {} before the first `add`."""

    def __init__(self) -> None:
        self.record: Record = {}

    def add(self, record: Record, weight: Weight) -> None:
        """Adds a record times its weight, or weights. The record itself is neither kept nor changed."""
        for prefix, factor in {"": weight}.items() if not isinstance(weight, Mapping) else weight.items():
            for entry, value in record.items():
                key = f"{prefix}.{entry}" if prefix else entry
                if key in self.record:
                    self.record[key].add_(value, alpha=factor)
                else:
                    self.record[key] = value * factor


class Stack:
    """Records stacked entry by entry, along a new leading axis (n, ...)."""

    def __init__(self) -> None:
        self._records: list[Record] = []

    def add(self, record: Record, weight: Weight) -> None:
        """Adds a record. The weight is not used; it is there so that a Stack can stand for a Total."""
        self._records.append(record)

    @property
    def record(self) -> Record:
        keys = dict.fromkeys(key for record in self._records for key in record)  # others, for another architecture
        return {key: torch.stack([record[key] for record in self._records if key in record]) for key in keys}


def merge(chunks: list[Record], summed: bool) -> Record:
    """Returns the chunks of a step as one record: their sum if `summed`, else concatenated; {} for no chunks."""
    if summed:
        total = Total()
        for chunk in chunks:
            total.add(chunk, 1.0)
        return total.record
    return {key: torch.cat([chunk[key] for chunk in chunks]) for key in (chunks[0] if chunks else {})}


def weighed(stacks: list[Record], weights: Sequence[Weight]) -> list[Record]:
    """Returns the weighted sum of each stack. weights: one for each record of all stacks, in order."""
    totals, left = [], iter(weights)
    for stack in stacks:
        total = Total()
        for place, weight in enumerate(islice(left, length([stack]))):
            total.add({key: values[place] for key, values in stack.items()}, weight)
        totals.append(total.record)
    return totals


def length(stacks: Sequence[Record]) -> int:
    """Returns the number of records in all stacks; 0 if they have no entries."""
    return sum(len(next(iter(stack.values()))) for stack in stacks if stack)


def split(record: Record, *keys: str) -> tuple[Record, Record]:
    """Returns the record without the keys, and a record of those keys that it has."""
    rest = {key: value for key, value in record.items() if key not in keys}
    return rest, {key: record[key] for key in keys if key in record}


def not_finite(record: Record) -> str | None:
    """Returns the name of the first entry that holds a number that is not finite; None if there is none."""
    for name, entry in record.items():
        # The sum is the fastest check. It may also overflow, so a sum that is not finite proves nothing yet.
        suspect = entry.is_floating_point() and not math.isfinite(entry.detach().sum())
        if suspect and not bool(entry.isfinite().all()):
            return name
    return None


def diverged(numbers: Measured, sent: Record, what: str) -> str | None:
    """Returns the name of the first result of a training that is not finite, such as "loss" or "update 'delta'"; None
    if all are finite.

    sent: what the client or peer sends. what: the word for that.
    """
    if not all(math.isfinite(numbers.columns.get(name) or 0.0) for name in ("loss_before", "loss_after")):
        return "loss"
    name = not_finite(sent)
    return None if name is None else f"{what} {name!r}"
