"""Trackers of experiments: observers that send a run to a service. To add one, put it into `TRACKERS`."""

from raysim.observers.trackers.mlflow import MLflow
from raysim.observers.trackers.tensorboard import TensorBoard
from raysim.observers.trackers.tracker import Tracker
from raysim.observers.trackers.trackio import Trackio
from raysim.observers.trackers.wandb import Wandb

TRACKERS: tuple[type[Tracker], ...] = (TensorBoard, Wandb, MLflow, Trackio)

__all__ = ["TRACKERS", "Tracker"]
