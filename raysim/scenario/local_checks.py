"""Checks of local training: its parts must fit the data, the loss and what a run asks of the cluster."""

from __future__ import annotations

from collections.abc import Iterator

from raysim.data.sources.linear_regression import LinearRegression
from raysim.data.sources.quadratic import Quadratic
from raysim.data.sources.shakespeare import Shakespeare
from raysim.local.augment import AugmentFunction
from raysim.local.augment.images import MixUp
from raysim.parts.errors import Problem
from raysim.scenario.schema import Scenario


def local_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields what of `local` makes no sense in the scenario. What needs the data or the model is told with them."""
    local, data = scenario.local, scenario.data
    for place, one in enumerate(local.augment):
        path = f"local.augment.{place}"
        if one.images and isinstance(data, Quadratic | LinearRegression | Shakespeare):
            text = f"{one.name} is for images, and {data.name} has none; leave it out, or name a function of your own"
            yield Problem(path, text)
        if isinstance(one, MixUp) and scenario.run.loss is not None:
            yield Problem(
                path, f"mixup mixes labels, which run.loss does not take; leave it or {scenario.run.loss.name} out"
            )
        if isinstance(one, AugmentFunction):
            yield from (Problem(f"{path}.{key}", text) for key, text in one.problems())
    if local.precision == "tf32" and not scenario.resources.gpus_per_client:
        text = "must be float32 or bfloat16 on CPUs, got tf32; take one of them, or set resources.gpus_per_client"
        yield Problem("local.precision", text)
