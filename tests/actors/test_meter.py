"""What is shown on dashboards, with stand-ins for Ray's gauges and counters."""

from typing import Any

import pytest

from actors import Instrument, Reading, meter
from actors.instrument import OF_POOLS
from raysim.observers.gauges import OF_RUNS

LEVEL = Instrument("level", "gauge", "A level.", tags=("place",))
COUNT = Instrument("count", "counter", "A count.", unit="bytes")


class Stand:
    """Notes what Ray would be told: for each series, its values."""

    def __init__(self, name: str, description: str, tag_keys: tuple[str, ...]) -> None:
        self.name, self.description, self.tag_keys = name, description, tag_keys
        self.told: dict[tuple[str, ...], list[float]] = {}
        made[name] = self

    def note(self, value: float, tags: dict[str, str]) -> None:
        assert tuple(tags) == self.tag_keys
        self.told.setdefault(tuple(tags.values()), []).append(value)


class StandGauge(Stand):
    set = Stand.note


class StandCounter(Stand):
    inc = Stand.note


made: dict[str, Any] = {}


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> meter.Meter:
    monkeypatch.setattr(meter, "Gauge", StandGauge)
    monkeypatch.setattr(meter, "Counter", StandCounter)
    made.clear()
    return meter.Meter("run")


def test_a_gauges_series_that_is_gone_falls_to_zero(shown: meter.Meter) -> None:
    shown.publish([Reading(LEVEL, 3, ("here",)), Reading(LEVEL, 1, ("there",))])
    shown.publish([Reading(LEVEL, 4, ("here",))])
    shown.publish([Reading(LEVEL, 5, ("here",))])
    assert made["raysim_level"].told == {("run", "here"): [3, 4, 5], ("run", "there"): [1, 0]}


def test_a_counter_grows_by_what_came_since_the_last_publication(shown: meter.Meter) -> None:
    for total in (5, 5, 7):
        shown.show([Reading(COUNT, total)])
        shown.publish([])
    assert made["raysim_count"].told == {("run",): [5, 2]}
    assert made["raysim_count"].description == "A count. Unit: bytes."


def test_what_is_counted_one_by_one_is_published_at_once(shown: meter.Meter) -> None:
    counted = Instrument("counted", "counter", "A count.", tags=("node",))
    for node in ("a", "b", "a"):
        shown.count(counted, node)
    shown.count(counted, "b", by=2.5)
    assert made == {}
    assert shown.due
    shown.publish([])
    assert not shown.due
    assert made["raysim_counted"].told == {("run", "a"): [2], ("run", "b"): [3.5]}


def test_every_instrument_has_a_name_of_its_own_and_a_help_text() -> None:
    names = [instrument.name for instrument in (*OF_POOLS, *OF_RUNS)]
    assert len(set(names)) == len(names)
    assert all(instrument.description.endswith(".") for instrument in (*OF_POOLS, *OF_RUNS))
