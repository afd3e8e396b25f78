"""Schedules: numbers that change during a run. A part that derives from `Schedulable` takes one for each of its
numbers."""

from raysim.schedules.schedulable import Schedulable
from raysim.schedules.schedule import SCHEDULES, Schedule

__all__ = ["SCHEDULES", "Schedulable", "Schedule"]
