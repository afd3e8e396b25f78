"""What ends a run beside its number of rounds, and evaluations by virtual time."""

from __future__ import annotations

import math
from typing import Annotated, Self

from pydantic import Field, model_validator

from raysim.parts.part import Count, Part, Positive, Unit


class Until(Part):
    """What ends a run, beside `rounds` or instead of it: whichever comes first.

    A run that ends so has the bits of one that was given as many rounds, and can be extended. `virtual_time` and
    `updates` are known beforehand, and are met. All else is looked at when models are evaluated, so that more may be
    spent until the next evaluation.
    """

    virtual_time: Annotated[Positive, Unit("rounds or seconds, as world.delay.unit says")] | None = None
    """Virtual time at which the run ends, and the model is evaluated as it is then. Updates that are under way are
    unfinished. With peers, the run ends with the last round that is over by then."""
    updates: Annotated[Count, Unit("updates")] | None = None
    """Number of updates that server steps use, or of peers' mixes. The round in which there are as many is the last."""
    bytes: Annotated[Positive, Unit("bytes")] | None = None
    """Size of the messages so far, up and down, as the table `steps` counts them."""
    flops: Annotated[Positive, Unit("floating-point operations")] | None = None
    """Floating-point operations of clients or peers so far, as the column `client_flops` of the table `steps` counts
    them."""
    metric: Annotated[str, Field(min_length=1)] | None = None
    """Metric that `at_least`, `at_most` and `patience` are about, such as accuracy. It is read on the samples that
    `data.validation` sets aside, as progress shows it: the mean over clients or peers if their own models are
    evaluated, else that of the global model."""
    at_least: float | None = None
    """The run ends when the metric is at least this."""
    at_most: float | None = None
    """The run ends when the metric is at most this."""
    patience: Annotated[Count, Unit("evaluations")] | None = None
    """The run ends after as many evaluations in a row in which the metric was no better than the best before."""

    @model_validator(mode="after")
    def _has_an_end(self) -> Self:
        asked = [key for key in ("at_least", "at_most", "patience") if getattr(self, key) is not None]
        if self.metric is None and asked:
            raise ValueError(f"metric must be given, for {asked[0]} is about it; set it, for example to accuracy")
        if self.metric is not None and not asked:
            raise ValueError(f"metric {self.metric} needs at_least, at_most or patience beside it, got none; set one")
        if not self.budgets and self.metric is None:
            raise ValueError("must have a key, such as virtual_time, bytes or metric, got none; add one")
        return self

    @property
    def budgets(self) -> dict[str, float]:
        """What may be spent, by key. Every run comes to an end of it."""
        keys = ("virtual_time", "updates", "bytes", "flops")
        return {key: value for key in keys if (value := getattr(self, key)) is not None}

    @property
    def trained(self) -> str:
        """The ends that are known only once clients train, in words; empty if there are none."""
        keys = ("bytes", "flops", "at_least", "at_most", "patience")
        return " or ".join(key for key in keys if getattr(self, key) is not None)

    @property
    def horizon(self) -> tuple[float, float]:
        """The virtual time and the number of updates at which it ends, which are known beforehand; else infinite."""
        return self.virtual_time or math.inf, self.updates or math.inf


class EveryTime(Part):
    """Evaluations by virtual time."""

    virtual_time: Annotated[Positive, Unit("rounds or seconds, as world.delay.unit says")]
    """Virtual time from one evaluation to the next, so that runs are evaluated at equal times whatever their rounds
    take. The server's model is evaluated as it is at each multiple of it; peers' after the last round that is over by
    then."""
