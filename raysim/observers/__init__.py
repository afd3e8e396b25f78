"""Observers of runs: who is told how a run goes on. To add one that scenarios can name, put it into `OBSERVERS`, or
into `TRACKERS` if it sends runs to a service."""

from raysim.observers.live import Lines
from raysim.observers.mlflow import MLflow
from raysim.observers.observer import Observer, RunBegin, RunEnd
from raysim.observers.tensorboard import TensorBoard
from raysim.observers.tracker import Tracker
from raysim.observers.wandb import Trackio, Wandb

OBSERVERS: tuple[type[Observer], ...] = (Lines,)
TRACKERS: tuple[type[Tracker], ...] = (TensorBoard, Wandb, MLflow, Trackio)

__all__ = ["OBSERVERS", "TRACKERS", "Lines", "Observer", "RunBegin", "RunEnd", "Tracker"]
