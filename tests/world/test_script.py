"""Dispatches and delays in the order of a file."""

from pathlib import Path

import pytest
from conftest import Raw, Simulate, quadratic
from pytest import param

from raysim import ScenarioError, parse_scenario

LOG = "client,delay,dispatched_at\n0,2,0\n1,5,0\n0,4,2\n2,1,3.5\n2,0.5,6\n1,1,6\n"


def scenario(folder: Path, dispatch: Raw, log: str = LOG, rounds: int = 6, **delay: object) -> Raw:
    """Three clients; the server steps at each arrival."""
    path = folder / "log.csv"
    path.write_text(log)
    script = {"name": "scripted", "path": str(path), "unit": "seconds", **delay}
    world = {"dispatch": {"order": str(path), **dispatch}, "delay": script}
    return quadratic([0.0] * 3, {"name": "fedbuff", "buffer": 1}, world, rounds)


def ran(simulate: Simulate, raw: Raw) -> list[tuple[int, float, float, int]]:
    """Client, dispatch, arrival and version of each update that was used: the same in a dry run and a real one."""
    found = []
    for options in ((), ("--dry",)):
        updates = simulate(raw, *options).pandas("updates").query("status == 'used'").sort_values("dispatch")
        columns = (updates[name].tolist() for name in ("client", "dispatched_at", "arrived_at", "version"))
        found.append(list(zip(*columns, strict=True)))
    assert found[0] == found[1]
    return found[0]


def test_clients_are_dispatched_at_the_times_of_a_log(simulate: Simulate, tmp_path: Path) -> None:
    """At 2, client 0 gets the model that its own update has made; at 6, client 2 that of client 0's at 6."""
    expected = [(0, 0, 2, 0), (1, 0, 5, 0), (0, 2, 6, 1), (2, 3.5, 4.5, 1), (2, 6, 6.5, 4), (1, 6, 7, 4)]
    assert ran(simulate, scenario(tmp_path, {})) == expected


def test_clients_are_dispatched_as_others_arrive(simulate: Simulate, tmp_path: Path) -> None:
    """Two at a time. At 2, client 0 again. At 5 client 1 arrives, and 2 follows. At 6, 2 would be next: it arrives."""
    expected = [(0, 0, 2, 0), (1, 0, 5, 0), (0, 2, 6, 1), (2, 5, 6, 2), (2, 6, 6.5, 4), (1, 6, 7, 4)]
    assert ran(simulate, scenario(tmp_path, {"concurrency": 2})) == expected


def test_clients_are_dispatched_round_by_round(simulate: Simulate, tmp_path: Path) -> None:
    """Rounds of two that end with their last arrival; client 2 is the next twice, and so alone in a round."""
    log = "client,delay\n0,2\n1,5\n2,4\n2,1\n0,1\n1,2\n"
    raw = scenario(tmp_path, {"per_round": 2}, log, 3) | {"algorithm": "fedavg"}
    assert ran(simulate, raw) == [(0, 0, 2, 0), (1, 0, 5, 0), (2, 5, 9, 1), (2, 9, 10, 2), (0, 9, 10, 2)]


def test_a_run_ends_early_with_its_log(simulate: Simulate, tmp_path: Path) -> None:
    for dispatch in ({}, {"concurrency": 2}):
        result = simulate(scenario(tmp_path, dispatch, rounds=50))
        assert result.info["ended_early"] == "no dispatch is left in world.dispatch.order"
        assert result.info["totals"]["used"] == 6


def test_delays_of_a_file_go_with_clients_at_random(simulate: Simulate, tmp_path: Path) -> None:
    """A client's n-th delay is that of its n-th row, whoever else is dispatched."""
    log = "client,delay\n" + "".join(f"{client},{10 * client + n + 1}\n" for n in range(9) for client in range(3))
    raw = scenario(tmp_path, {}, log)
    raw["world"]["dispatch"] = {"concurrency": 1}
    updates = simulate(raw).pandas("updates")
    turns = updates.groupby("client").cumcount()
    assert (updates.arrived_at - updates.dispatched_at == 10 * updates.client + turns + 1).all()


TIMED = [
    param("client,delay\n0,1\n", "order: .*log.csv: must have the columns client, dispatched_at", id="no times"),
    param("client,delay,dispatched_at\n0,1,5\n0,1,4\n", "line 3: dispatched_at must be no earlier than", id="back"),
    param("client,delay,dispatched_at\n3,1,5\n", "log.csv: must name clients 0 to 2, got 3", id="stranger"),
    param("client,delay,dispatched_at\n0,-1,5\n", "delay: .*line 2: delay must be a number of at least 0", id="past"),
]


@pytest.mark.parametrize(("log", "message"), TIMED)
def test_a_wrong_log_is_told_when_the_scenario_is_checked(log: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=message):
        parse_scenario(scenario(tmp_path, {}, log))


def test_a_log_must_not_dispatch_who_is_under_way(tmp_path: Path) -> None:
    import raysim

    raw = scenario(tmp_path, {}, "client,delay,dispatched_at\n0,2,0\n0,1,1\n")
    with pytest.raises(raysim.RunFailed, match="dispatch 1 is of client 0 at 1, which is then still under way"):
        raysim.run(parse_scenario(raw), out=tmp_path, dry=True)


@pytest.mark.parametrize(
    ("world", "message"),
    [
        ({"dispatch": {"order": "a.csv", "picks": [[0]]}}, "order must not be given beside picks; leave"),
        ({"dispatch": {"order": "a.csv"}}, "dispatch.order alone needs a delay in seconds"),
        (
            {"dispatch": {"order": "a.csv", "per_round": 1}, "availability": {"name": "random", "probability": 0.5}},
            "availability must not be given beside dispatch.order",
        ),
        (
            {"dispatch": {"picks": [[0]]}, "availability": {"name": "random", "probability": 0.5}},
            "availability must not be given beside dispatch.picks",
        ),
        (
            {"dispatch": {"per_round": 1}, "delay": {"name": "scripted", "path": "a.csv", "delays": [[1]]}},
            "must have exactly one of `delays` and `path`, got both",
        ),
        ({"dispatch": {"per_round": 1}, "delay": "scripted"}, "must have exactly one of .*, got neither"),
    ],
)
def test_keys_that_contradict_each_other_are_told(world: Raw, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        parse_scenario(quadratic([0.0], "fedbuff", world, 1))


def test_rounds_need_enough_clients_in_the_order(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"must name a client for each of 20 dispatches, got 6; lower run.rounds"):
        parse_scenario(scenario(tmp_path, {"per_round": 2}, rounds=10))
