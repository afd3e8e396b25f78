"""Runs in TensorBoard."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from raysim.observers.observer import RunBegin, RunEnd
from raysim.observers.tracker import RoundPoint, Tracker, outcome, parameters


class TensorBoard(Tracker):
    """Writes event files for TensorBoard.

    Each metric is there twice: over rounds and, below `virtual_time/`, over virtual time. TensorBoard's steps are whole
    numbers, so virtual time is rounded there; each event's time is the virtual time itself, as seconds since 1970. The
    scenario is on the page HParams, and how the run ended on the page Text. The model stays in the run's folder.
    """

    library: ClassVar[str | None] = "tensorboard"
    package: ClassVar[str] = "raysim[tensorboard]"

    name: str = "tensorboard"
    folder: str | None = None
    """Where event files go: each run's into a folder of its name, in that of its sweep. null: into the folder
    `tensorboard` of the run's own, so that `tensorboard --logdir runs` shows all of them."""
    _writer: Any = None

    def open(self, run: RunBegin) -> int | None:
        from tensorboard.plugins.hparams.summary_v2 import hparams_pb
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        own = run.folder / "tensorboard"
        place = own if self.folder is None else Path(self.folder, run.sweep or "", run.run)
        for events in place.glob("events.out.tfevents.*") if place.is_dir() else ():
            events.unlink()  # the whole run is written again
        self._writer = EventFileWriter(str(place))
        of_run = parameters(run).items()
        values = {key: value if isinstance(value, bool | int | float) else str(value) for key, value in of_run}
        self._write(hparams_pb(values, run.run, 0.0), 0, 0.0)
        return None

    def log(self, point: RoundPoint) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        for prefix, step in (("", point.round), ("virtual_time/", round(point.virtual_time))):
            values = [Summary.Value(tag=prefix + name, simple_value=value) for name, value in point.metrics.items()]
            self._write(Summary(value=values), step, point.virtual_time)
        self._writer.flush()

    def close(self, end: RunEnd, files: Sequence[Path]) -> None:
        from tensorboard.plugins.text.summary_v2 import text_pb

        del files  # TensorBoard shows none
        told = "  \n".join(f"**{key}** {value}" for key, value in outcome(end).items())
        self._write(text_pb("outcome", told), 0, 0.0)
        self._writer.close()

    def _write(self, summary: Any, step: int, time: float) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        self._writer.add_event(Event(wall_time=time, step=step, summary=summary))
