"""Runs that can be followed with pencil and paper."""

from typing import Any

from conftest import Raw, Simulate, quadratic

PICKS = [[0, 1], [2, 3], [0, 2]]  # in three rounds of four clients
DELAYS = [[0.0, 1.0], [2.0], [0.0, 0.0], [0.0]]
BOTH: Raw = {"dispatch": {"picks": [[0, 1]] * 3}}


def scripted(picks: list[list[int]], delays: list[list[float]]) -> Raw:
    return {"dispatch": {"picks": picks}, "delay": {"name": "scripted", "delays": delays}, "staleness": "rounds"}


def x(simulate: Simulate, raw: Raw) -> float:
    """The final vector's only element."""
    (value,) = simulate(raw).vectors()["w"].tolist()
    return float(value)


def final(simulate: Simulate, algorithm: Any, rounds: int, local: Raw, world: Raw = BOTH, **more: Any) -> list[float]:
    """The last vector of two clients with the losses x^2 / 2 and (x - 4)^2 / 2, from x = 1 on, with whole batches."""
    raw = quadratic([0.0, 4.0], algorithm, world, rounds, start=1.0, **more)
    vector: list[float] = simulate({**raw, "local": {"batch_size": None, **local}}).vectors()["w"].tolist()
    return vector
