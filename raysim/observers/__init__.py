"""Observers of runs: who follows the progress of a run. To add one that scenarios can name, put it into `OBSERVERS`, or
into `TRACKERS` if it sends runs to a service."""

from raysim.observers.live import Lines
from raysim.observers.observer import Observer, RunBegin, RunEnd
from raysim.observers.services import MLflow, TensorBoard, Wandb
from raysim.observers.tracker import Tracker

OBSERVERS: tuple[type[Observer], ...] = (Lines,)
TRACKERS: tuple[type[Tracker], ...] = (TensorBoard, Wandb, MLflow)

__all__ = ["OBSERVERS", "TRACKERS", "Lines", "Observer", "RunBegin", "RunEnd", "Tracker"]
