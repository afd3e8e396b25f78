"""Aggregates of a step's updates, each in a file of its own. To add one, put it into `AGGREGATES`."""

from typing import Annotated

from raysim.algorithms.aggregates.aggregate import Aggregate
from raysim.algorithms.aggregates.bulyan import Bulyan
from raysim.algorithms.aggregates.clip_norm import ClipNorm
from raysim.algorithms.aggregates.krum import Krum
from raysim.algorithms.aggregates.mean import Mean
from raysim.algorithms.aggregates.median import Median
from raysim.algorithms.aggregates.trimmed_mean import TrimmedMean
from raysim.parts.part import OneOf

AGGREGATES: tuple[type[Aggregate], ...] = (Mean, ClipNorm, Median, TrimmedMean, Krum, Bulyan)
AnAggregate = Annotated[Aggregate, OneOf(AGGREGATES, "raysim.aggregates")]

__all__ = ["AGGREGATES", "Aggregate", "AnAggregate", "Bulyan", "ClipNorm", "Krum", "Mean", "Median", "TrimmedMean"]
