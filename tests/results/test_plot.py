"""Learning curves on matplotlib's axes, and as files for papers."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from command_line import command
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from reported_runs import evaluation, made, step

from results import NotComparable, Runs, load, write_json
from results.groups import labels


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    """FedAvg with two seeds, FedBuff with one; steps of 20 bytes up and down together before each evaluation."""
    values = {("fedavg", 0): (0.1, 0.5), ("fedavg", 1): (0.3, 0.9), ("fedbuff", 0): (0.4, 0.6)}
    for (algorithm, seed), of_run in values.items():
        rows = [evaluation(number, value) for number, value in enumerate(of_run)]
        rows += [evaluation(number, 1 - value, metric="loss") for number, value in enumerate(of_run)]
        own = [evaluation(1, value, member, subject="client") for member, value in enumerate((0.2, seed))]
        steps = [step(number, 10, 1.0) for number in range(2)]
        scenario = {"seed": seed, "algorithm": {"name": algorithm}, "world": {"delay": {"unit": "seconds"}}}
        made(tmp_path / f"{algorithm}-{seed}", {"evaluations": rows + own, "steps": steps}, scenario)
    return load(tmp_path)


def lines(axes: Axes) -> dict[str, list[tuple[float, float]]]:
    return {
        str(line.get_label()): [(float(x), pytest.approx(float(y))) for x, y in zip(*line.get_data(), strict=True)]
        for line in axes.lines
    }


def band(axes: Axes) -> list[tuple[float, float]]:
    """The lowest and the highest value of the only band at each x."""
    (found,) = (child for child in axes.collections if isinstance(child, PolyCollection))
    corners = found.get_paths()[0].vertices
    at = sorted({float(x) for x, _ in corners})
    return [(min(y for x, y in corners if x == a), max(y for x, y in corners if x == a)) for a in at]


def test_a_line_is_the_mean_over_seeds(runs: Runs) -> None:
    axes = Figure().subplots()
    assert runs.plot("accuracy", axes=axes) is axes and axes.get_legend()
    assert lines(axes) == {"fedavg": [(0, 0.2), (1, 0.7)], "fedbuff": [(0, 0.4), (1, 0.6)]}
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("virtual time (seconds)", "accuracy")
    over = {x: runs.plot("loss", x, axes=Figure().subplots()) for x in ("virtual_time", "bytes", "up_bytes", "seconds")}
    assert lines(over["bytes"])["fedbuff"] == [(20, 0.6), (40, 0.4)]
    assert lines(over["up_bytes"])["fedbuff"] == [(10, 0.6), (20, 0.4)]
    assert over["virtual_time"].get_xlabel() == "virtual time (seconds)"
    own = runs.plot(subject="client", axes=Figure().subplots())
    assert lines(own) == {"fedavg": [(1, 0.35)], "fedbuff": [(1, 0.1)]}  # means of 0.2 and the seed
    assert own.get_ylabel() == "accuracy, mean over clients"


def test_runs_that_are_evaluated_at_equal_times_are_averaged_time_by_time(tmp_path: Path) -> None:
    """In a seed's run, round 1 is over by then; in the other's, round 3."""
    of = {"run": {"evaluate_every": {"virtual_time": 50.0}}}
    for seed, (round, value) in enumerate([(1, 0.2), (3, 0.4)]):
        row = evaluation(round, value, virtual_time=50.0)
        made(tmp_path / str(seed), {"evaluations": [row]}, {"seed": seed, **of})
    axes = load(tmp_path).plot(x="virtual_time", axes=Figure().subplots())
    assert list(lines(axes).values()) == [[(50.0, 0.3)]]


@pytest.mark.parametrize(
    "how, half",
    [
        ("minmax", (0.1, 0.2)),
        ("std", (0.1 * math.sqrt(2), 0.2 * math.sqrt(2))),
        ("ci", (12.706 * 0.1, 12.706 * 0.2)),  # the quantile of t with one degree of freedom, and std / sqrt(2)
    ],
)
def test_bands(how: str, half: tuple[float, float], runs: Runs) -> None:
    axes = runs.plot(band=how, axes=Figure().subplots())
    expected = [(max(mean - h, 0.0), min(mean + h, 1.0)) for mean, h in zip((0.2, 0.7), half, strict=True)]
    assert band(axes) == [pytest.approx(pair, rel=1e-4) for pair in expected]


@pytest.mark.parametrize(
    "how, text",
    [
        ({"metric": "acuracy"}, "metric: must be one of accuracy on test, loss on test, got 'acuracy' on test"),
        ({"x": "time"}, "x: must be one of round, virtual_time, bytes, up_bytes, down_bytes, seconds, got 'time'"),
        ({"band": "sem"}, "band: must be one of minmax, std, ci, none, got 'sem'"),
        ({"subject": "unseen"}, "metric: must be evaluated in a run, and none has an evaluation of these models"),
    ],
)
def test_what_cannot_be_drawn_is_refused(how: dict[str, Any], text: str, runs: Runs) -> None:
    with pytest.raises(NotComparable) as refused:
        runs.plot(**how)
    assert text in str(refused.value)


def test_runs_count_as_in_comparisons(runs: Runs, tmp_path: Path) -> None:
    """Others than those of a line's seed are refused, and those that are not finished are named, unless all are so."""
    rows = {"evaluations": [evaluation(0, 0.9)]}
    world = {"world": {"delay": {"unit": "seconds"}}}
    made(tmp_path / "other", rows, {"algorithm": {"name": "fedbuff"}, "model": {"width": 9}, **world})
    answer = command("plot", tmp_path, "--by", "algorithm", "--out", tmp_path / "x.svg")
    told = "those with algorithm.name=fedbuff must differ in seed only, got several values of model.width"
    assert (answer.exit_code, answer.stdout) == (2, "") and told in answer.stderr
    with pytest.raises(NotComparable, match=told):
        load(tmp_path).plot(by=["algorithm"], axes=Figure().subplots())
    write_json(tmp_path / "other", {**load(tmp_path / "other")[0].info, "status": "interrupted"})
    answer = command("plot", tmp_path, "--by", "algorithm", "--out", tmp_path / "x.svg")
    assert answer.exit_code == 0 and answer.stderr == f"{tmp_path / 'other'}: interrupted; left out\n"
    for drawn, unfinished, number in ((load(tmp_path), True, 3), (load(tmp_path / "other"), False, 1)):
        with pytest.warns(UserWarning, match="interrupted; counts"):
            assert len(drawn.plot(unfinished=unfinished, axes=Figure().subplots()).lines) == number


def test_the_command_writes_files_of_a_given_size(runs: Runs, tmp_path: Path) -> None:
    folder = runs[0].folder.parent
    for name in ("one.pdf", "two.pdf"):
        answer = command("plot", folder, "--x", "virtual_time", "--width", "4", "--out", tmp_path / name)
        assert (answer.exit_code, answer.stdout) == (0, f"accuracy in {tmp_path / name}\n")
    pdf = (tmp_path / "one.pdf").read_bytes()
    assert pdf == (tmp_path / "two.pdf").read_bytes()
    assert pdf.startswith(b"%PDF") and b"/MediaBox [ 0 0 288 228.96 ]" in pdf  # 0.7 of 4 inches, and two lines' names
    assert command("plot", folder, "--metric", "loss", "--out", tmp_path / "three.svg").exit_code == 0
    assert "<svg" in (tmp_path / "three.svg").read_text()
    assert command("plot", folder, "--out", tmp_path / "four.gif").exit_code == 2


def test_labels_name_the_parts_of_lists_where_that_tells_them_apart() -> None:
    def of(*uplinks: Any) -> list[str]:
        scenarios: list[Any] = [{"uplink": json.dumps(uplink)} for uplink in uplinks]
        return labels(["uplink"], [tuple(scenario.values()) for scenario in scenarios], scenarios)

    top, half = {"name": "top_k", "k": 1}, {"name": "half"}
    assert of([], [half], [top, half]) == ["uplink=none", "uplink=half", "uplink=top_k+half"]
    assert of([top], [{**top, "k": 2}]) == [f'uplink=[{{"name": "top_k", "k": {k}}}]' for k in (1, 2)]


def test_mixed_runs_have_short_labels_that_fit_and_only_those_drawn(tmp_path: Path) -> None:
    """Names tell them apart more briefly than keys; a run without the metric is named, and makes no label longer."""
    for place, name in enumerate(("one", "two", "a name of very many words, too long for a line of the legend")):
        scenario = {"name": name, "algorithm": {"name": "ab"[place % 2]}, "local": {"lr": 0.1 * (1 + place // 2)}}
        made(tmp_path / str(place), {"evaluations": [evaluation(0, 0.5)]}, {**scenario, "delay": {"name": "none"}})
    made(
        tmp_path / "loss", {"evaluations": [evaluation(0, 0.5, metric="loss")]}, {"name": "one", "delay": {"name": "x"}}
    )
    out = tmp_path / "figure.svg"
    answer = command("plot", tmp_path, "--out", out)
    assert answer.stderr == f"left out: 1 run without accuracy on test, such as {tmp_path / 'loss'}\n"
    svg = out.read_text()
    assert ">one<" in svg and ">two<" in svg and ">a name of very many words, too long" in svg
    assert "too long for a line of the legend" not in svg and "name=" not in svg
