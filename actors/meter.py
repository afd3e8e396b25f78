"""Shows readings of instruments in Ray's dashboard and to Prometheus."""

import itertools
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence

from ray.util.metrics import Counter, Gauge

from actors.instrument import Instrument, Reading

LEAST_S = 1.0  # seconds between publications: Ray passes them on, and Prometheus reads them, as rarely

_Series = dict[tuple[Instrument, tuple[str, ...]], float]  # a value for each instrument and its tags


class Meter:
    """Collects the readings of one run, and publishes them now and then."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._shown: Sequence[Reading] = ()
        self._counts: _Series = defaultdict(float)
        self._made: dict[str, Gauge | Counter] = {}  # totals by the instrument's name
        self._last: _Series = {}  # what was published last
        self._published = -LEAST_S

    def show(self, readings: Sequence[Reading]) -> None:
        """Takes readings for the next publications. They replace the ones before."""
        self._shown = readings

    def count(self, counter: Instrument, *tags: str, by: float = 1.0) -> None:
        """Adds to a counter. It costs as little as adding two numbers, so that it can be done for every job."""
        self._counts[counter, tags] += by

    @property
    def due(self) -> bool:
        """Whether it is time to publish again."""
        return time.monotonic() - self._published >= LEAST_S

    def publish(self, readings: Iterable[Reading]) -> None:
        """Publishes these readings together with those from `show` and `count`. A gauge's series that has no reading
        any more falls to 0."""
        self._published = time.monotonic()
        read = itertools.chain(self._shown, readings)
        new = self._counts | {(instrument, tags): value for instrument, value, tags in read}
        gone = {series: 0.0 for series in self._last.keys() - new.keys() if series[0].kind == "gauge"}
        for (instrument, tags), value in (gone | new).items():
            labels = dict(zip(("run", *instrument.tags), (self._run, *tags), strict=True))
            made = self._made.get(instrument.name) or self._make(instrument)
            if isinstance(made, Gauge):
                made.set(value, labels)
            elif (more := value - self._last.get((instrument, tags), 0.0)) > 0:
                made.inc(more, labels)
        self._last = new

    def end(self) -> None:
        """Lets all gauges of the run fall to 0: its process lives on, and so would their last values."""
        self._shown = ()
        self.publish(())

    def _make(self, instrument: Instrument) -> Gauge | Counter:
        kind: type[Gauge | Counter] = Gauge if instrument.kind == "gauge" else Counter
        made = kind(f"raysim_{instrument.name}", instrument.help, tag_keys=("run", *instrument.tags))
        self._made[instrument.name] = made
        return made
