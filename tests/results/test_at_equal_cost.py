"""Runs are compared at equal cost, and by what they spend until they are good enough."""

from pathlib import Path
from typing import Any

import pytest
from compared_runs import FEDAVG, FEDBUFF, compare, made, refused
from toys_parts import Slow

import raysim
from raysim.parts.rng import Stream
from results import Writer, load, write_json
from results.rows import EvaluationRow


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """FedAvg is best in the end, FedBuff sooner: each has an evaluation at 2.5, 4.5 and 6.5, of 600 bytes each."""
    made(tmp_path / "a", FEDAVG, [0.1, 0.2, 0.9])
    made(tmp_path / "b", FEDBUFF, [0.5, 0.6, 0.7])
    return tmp_path


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (("virtual_time", 4.5), [0.2, 0.6]),
        (("virtual_time", 4.4), [0.1, 0.5]),
        (("bytes", 1200), [0.2, 0.6]),
        (("up_bytes", 400), [0.2, 0.6]),
        (("down_bytes", 799), [0.1, 0.5]),
        (("rounds", 5), [0.2, 0.6]),
        (("updates", 4), [0.1, 0.5]),
        (("bytes", 1e9), [0.9, 0.7]),
    ],
)
@pytest.mark.filterwarnings("ignore:.*; they count with what they had by then")
def test_evaluations_after_the_budget_do_not_count(at: tuple[str, float], expected: list[float], two: Path) -> None:
    assert load(two).compare("algorithm", at=at)["mean"].tolist() == expected


def test_runs_that_ended_before_the_budget_are_told(two: Path) -> None:
    """Totals are those by then, too. A run without an evaluation by then has no number."""
    answer = compare(two, "--at", "virtual_time=9", "--by", "algorithm")
    assert "2 of 2 runs ended before virtual_time 9, such as " in answer.stderr
    assert "accuracy: last evaluation with virtual time at most 9 of the global model" in answer.stdout
    assert load(two).compare("algorithm", metric="up_bytes", at=("virtual_time", 4.5))["mean"].tolist() == [400, 400]
    early = compare(two, "--at", "virtual_time=1", "--by", "algorithm", "--format", "csv")
    assert ",accuracy,,,0,1" in early.stdout
    made(two / "c", {**FEDBUFF, "seed": 1}, [])
    told = compare(two, "--at", "virtual_time=4", "--by", "algorithm").stderr
    assert "1 run without accuracy of subject global on split test with virtual_time at most 4, such as" in told


def test_a_common_budget_is_what_all_runs_that_are_over_have_spent(two: Path) -> None:
    """It is told so that it can be given again. A run that is not over does not lower it."""
    made(two / "c", {**FEDBUFF, "seed": 1}, [0.3, 0.4])
    made(two / "d", {**FEDBUFF, "seed": 2}, [0.9], status="interrupted")
    common = compare(two, "--at", "bytes=common", "--by", "algorithm")
    assert "last evaluation with bytes at most 1200 of the global model" in common.stdout
    assert compare(two, "--at", "bytes=1.2kB", "--by", "algorithm").stdout == common.stdout
    assert common.stdout == compare(two, "--at", "bytes=1200", "--by", "algorithm").stdout
    more = compare(two, "--at", "bytes=1201", "--by", "algorithm").stderr
    assert f"ended before bytes 1201, such as {two / 'c'}; they count with what they had by then" in more


def test_a_target_tells_the_costs_that_are_asked_for(two: Path) -> None:
    lines = compare(two, "--target", "accuracy=0.6", "--cost", "virtual_time,updates", "--format", "csv").stdout
    assert "fedavg,virtual_time_to_accuracy_0.6,6.5,,1,0,0" in lines
    assert "fedbuff,updates_to_accuracy_0.6,8.0,,1,0,0" in lines
    assert "bytes_to" not in lines


def test_pairs_leave_out_who_never_gets_there_and_say_so(two: Path) -> None:
    for place, scenario in (("c", FEDAVG), ("d", FEDBUFF)):
        made(two / place, {**scenario, "seed": 1}, [0.8, 0.8, 0.8])
    with pytest.warns(UserWarning) as told:
        frame = load(two).compare("algorithm", paired=True, target=[("accuracy", 0.8)], cost="rounds", metric=())
    assert frame["pairs"].tolist() == [1]
    text = f"algorithm.name=fedbuff: 1 of 2 pairs left out, such as that of {two / 'b'}"
    assert f"{text}, because its rounds_to_accuracy_0.8 is not reached" in [str(warning.message) for warning in told]


def test_a_model_may_be_picked_on_validation_and_picking_on_test_is_called_so(tmp_path: Path) -> None:
    """Validation is best at the second evaluation, the test at the third."""
    made(tmp_path / "a", FEDAVG, [0.1, 0.2, 0.9])
    writer = Writer(tmp_path / "v", "v")
    for number, (test, validation) in enumerate(((0.1, 0.3), (0.2, 0.5), (0.9, 0.4))):
        when: dict[str, Any] = {"step": number, "round": number, "virtual_time": float(number)}
        for split, value in (("test", test), ("validation", validation)):
            what = {"subject": "global", "split": split, "metric": "accuracy", "value": value, "samples": 10}
            writer.add(EvaluationRow(**when, **what))
    writer.close()
    write_json(tmp_path / "v", {"run": "v", "status": "finished", "scenario": {"seed": 1, **FEDAVG}, "seed": 1})
    runs = load(tmp_path / "v")
    assert runs.compare(reduce="at_best_validation")["mean"].tolist() == [0.2]
    assert runs.compare(reduce="at_best_validation", at=("virtual_time", 0.5))["mean"].tolist() == [0.1]
    picked = compare(tmp_path / "v", "--reduce", "at_best_validation").stdout
    assert "accuracy: evaluation that is best on validation of the global model, split test" in picked
    assert "accuracy: best evaluation (picked on test itself)" in compare(tmp_path / "v", "--reduce", "best").stdout
    assert "split: must be another one than that by which" in refused(
        tmp_path / "v", "--reduce", "at_best_validation", "--split", "validation"
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            ("--at", "time=3"),
            "at: must be one of rounds, virtual_time, updates, bytes, up_bytes, down_bytes, flops, energy",
        ),
        (("--at", "bytes"), "at: must be cost=number or cost=common, such as virtual_time=3600 or bytes=5MB, got"),
        (("--at", "bytes=5mb"), "such as virtual_time=3600 or bytes=5MB, got 'bytes=5mb'"),
        (("--at", "rounds=5kB"), "such as virtual_time=3600 or bytes=5MB, got 'rounds=5kB'"),
        (("--at", "bytes=-1"), "at: must be more than 0, got bytes=-1"),
        (
            ("--at", "money=common"),
            "at: must be one of rounds, virtual_time, updates, bytes, up_bytes, down_bytes, flops, energy",
        ),
        (("--at", "energy=common"), "at: must be a cost that a run says, got 'energy'; take another one"),
        (("--target", "accuracy=1", "--cost", "money"), "cost: must be one of rounds"),
        (("--cost", "bytes"), "--cost: must be given together with --target, up to which it is counted"),
        (("--at", "bytes=9", "--metric", "seconds"), "metric: must not be seconds with `at`"),
    ],
)
def test_what_cannot_be_a_budget_is_refused(options: tuple[str, ...], told: str, two: Path) -> None:
    assert told in refused(two, *options)


def one_after_another(**world: Any) -> dict[str, Any]:
    """Two clients in turn, one at a time, for four steps."""
    return {
        "name": "energy",
        "data": {"name": "quadratic", "centers": [0.0, 1.0]},
        "model": "vector",
        "algorithm": {"name": "fedbuff", "buffer": 1},
        "local": {"batch_size": None},
        "world": {"dispatch": {"concurrency": 1, "policy": "round_robin"}, **world},
        "run": {"rounds": 4, "evaluate_every": 1},
    }


def test_energy_is_the_power_of_clients_times_their_time_under_way(tmp_path: Path) -> None:
    """Two clients of 2 and 5 W take 3 s each, one after another: 6 J, 21 J, ..., and 15 J more each second time."""
    scenario = one_after_another(delay={"name": "constant", "value": 3.0, "unit": "seconds"}, watts=[2.0, 5.0])
    result = raysim.run(scenario, out=tmp_path, inline=True)
    clients = result.pandas("updates").query("status == 'used'").client.tolist()
    joules = [3.0 * (2.0, 5.0)[client] for client in clients]
    frame = load(result.folder).compare(metric=(), target=[("loss", 0.0)], cost=["energy", "flops"])
    assert frame["mean"].tolist() == [sum(joules), 0.0]
    assert frame["censored"].tolist() == [1, 1]
    with pytest.raises(raysim.ScenarioError, match=r"world.watts: must have one number for each of 2 clients, got 1"):
        raysim.parse_scenario({**scenario, "world": {**scenario["world"], "watts": [2.0]}})


class Plugged(Slow):
    """Tells the power of one client."""

    power: Any = None

    def watts(self, stream: Stream, clients: int) -> list[float] | None:
        return list(self.power) if isinstance(self.power, tuple) else self.power  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("power", "got"), [([2.0], "a list of 1"), (5, "5"), ([2.0, -1.0], "-1.0 among"), ([2.0, None], "nothing among")]
)
def test_a_delay_of_ones_own_tells_the_power_of_each_client(power: Any, got: str) -> None:
    delay = {"name": "test_at_equal_cost:Plugged", "power": power}
    with pytest.raises(
        raysim.ScenarioError, match=f"world.delay: .* number for each of 2 clients, .*watts.*, got {got}"
    ):
        raysim.parse_scenario(one_after_another(delay=delay))


def test_groups_and_devices_of_a_trace_have_a_power_of_their_own(tmp_path: Path) -> None:
    """Client 0 has the trace's 2 W, client 1 the 7 W of its group; each update takes a second."""
    (tmp_path / "devices.csv").write_text("client,latency_s,watts\n0,1,2\n1,1,3\n")
    scenario = one_after_another(delay={"name": "trace", "path": str(tmp_path / "devices.csv")})
    scenario["clients"] = [{"name": "fast", "members": [1], "watts": 7}]
    result = raysim.run(scenario, out=tmp_path / "runs", inline=True)
    assert result.info["watts"] == [2.0, 7.0]
    clients = result.pandas("updates").query("status == 'used'").client.tolist()
    frame = load(result.folder).compare(metric=(), target=[("loss", 0.0)], cost=["energy"])
    assert frame["mean"].tolist() == [pytest.approx(sum((2.0, 7.0)[client] for client in clients))]
    (tmp_path / "devices.csv").write_text("client,latency_s\n0,1\n1,1\n")
    with pytest.raises(raysim.ScenarioError, match=r"world\.watts: must say the power of all clients"):
        raysim.parse_scenario(scenario)
