"""Topologies whose graph changes during a run, by rounds or by virtual time."""

from typing import Annotated

from raysim.parts.part import Positive, Rounds, Unit
from raysim.world.availability import times_over
from raysim.world.topology import Topology


class Redrawn(Topology):
    """A topology with a graph for each epoch. A subclass adds its `name`."""

    redraw_every: Rounds | None = None
    """Number of rounds after which the graph changes. null: one graph for the whole run."""
    period_s: Annotated[Positive, Unit("s")] | None = None
    """Seconds of virtual time after which the graph changes; `redraw_every` does not count then. Peers that do not wait
    for each other need it, if the graph is to change. A message is mixed as long as its edge is there."""

    def epoch(self, round: int) -> int:
        return round // self.redraw_every if self.redraw_every and self.period_s is None else 0

    def epoch_at(self, round: int, time: float) -> int:
        return self.epoch(round) if self.period_s is None else times_over(self.period_s, time)
