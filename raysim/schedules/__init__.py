"""Schedules, each in a file of its own. To add one, put it into `SCHEDULES`.

A part that derives from `Schedulable` takes a schedule for each of its numbers.
"""

from raysim.schedules.constant import ConstantSchedule
from raysim.schedules.cosine import CosineSchedule
from raysim.schedules.exponential import ExponentialSchedule
from raysim.schedules.one_cycle import OneCycleSchedule
from raysim.schedules.polynomial import PolynomialSchedule
from raysim.schedules.schedulable import SCHEDULES, Schedulable
from raysim.schedules.schedule import Schedule
from raysim.schedules.step import StepSchedule

__all__ = [
    "SCHEDULES",
    "ConstantSchedule",
    "CosineSchedule",
    "ExponentialSchedule",
    "OneCycleSchedule",
    "PolynomialSchedule",
    "Schedulable",
    "Schedule",
    "StepSchedule",
]
