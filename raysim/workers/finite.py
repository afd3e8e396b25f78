"""Finds what is not finite: NaN or infinite numbers in losses, updates and models."""

from __future__ import annotations

import math

from raysim.terms import Record
from raysim.workers.replies import Numbers


def not_finite(record: Record) -> str | None:
    """Returns the name of the first entry that holds a number that is not finite; None if there is none."""
    for name, entry in record.items():
        # The sum is the fastest check. It may also overflow, so a sum that is not finite proves nothing yet.
        suspect = entry.is_floating_point() and not math.isfinite(entry.sum())
        if suspect and not bool(entry.isfinite().all()):
            return name
    return None


def diverged(numbers: Numbers, sent: Record, what: str) -> str | None:
    """Returns the name of the first result of a training that is not finite, such as "loss" or "update 'delta'"; None
    if all are finite.

    numbers: what the tables show of it. sent: what the client or peer sends. what: the word for that.
    """
    if not all(math.isfinite(numbers.get(name) or 0.0) for name in ("loss_before", "loss_after")):
        return "loss"
    name = not_finite(sent)
    return None if name is None else f"{what} {name!r}"
