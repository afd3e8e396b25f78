"""Observers of runs: who is told how a run goes on. To add one that scenarios can name, put it into `OBSERVERS`."""

from raysim.observers.lines import Lines
from raysim.observers.observer import Observer, RunBegin, RunEnd
from raysim.observers.trackers import TRACKERS, Tracker

OBSERVERS: tuple[type[Observer], ...] = (Lines,)

__all__ = ["OBSERVERS", "TRACKERS", "Lines", "Observer", "RunBegin", "RunEnd", "Tracker"]
