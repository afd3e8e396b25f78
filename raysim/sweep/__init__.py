"""Several runs of one scenario: side by side, or as trials of a search."""

from raysim.sweep.batch import RunOutcome, run_all
from raysim.sweep.expand import Plan, load_sweep
from raysim.sweep.settings import Sweep

__all__ = ["Plan", "RunOutcome", "Sweep", "load_sweep", "run_all"]
