"""The results of runs: their tables, with a writer, readers, a summary, comparisons and a report."""

from results.columns import is_wall
from results.disk import CannotWrite
from results.info import NotARun, this_process, write_json
from results.keys import UnknownKey
from results.load import load
from results.location import UnknownLocation
from results.measure import NotComparable
from results.reader import Run, open_run
from results.runs import Runs
from results.schemas import TABLES
from results.summary import Summary, summary
from results.writer import Writer

__all__ = [
    "TABLES",
    "CannotWrite",
    "NotARun",
    "NotComparable",
    "Run",
    "Runs",
    "Summary",
    "UnknownKey",
    "UnknownLocation",
    "Writer",
    "is_wall",
    "load",
    "open_run",
    "summary",
    "this_process",
    "write_json",
]
