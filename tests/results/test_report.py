"""The report: a page of what the runs' tables hold, and of nothing else."""

import math
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import compared_runs
import pytest
from command_line import command
from conftest import Raw, Simulate, digits
from matplotlib.figure import Figure
from peers_runs import centers
from pytest import approx
from reported_runs import Rows, evaluation, made, peers, step, when
from table_rows import update
from typer.testing import Result

from results import CannotWrite, NotComparable, Runs, Writer, load, write_json
from results.drawing import evaluated, points
from results.groups import grouped
from results.report import Report, draw, report
from results.report.page import headline
from results.report.sections import CURVES, SECTIONS
from results.rows import UpdateRow


def told(*arguments: str | Path) -> Result:
    """What the command answers."""
    return command("report", *arguments)


def made_of(*folders: Path, only: str = "") -> Report:
    """The report on runs. only: the name of its only section, because drawing takes most of a test's time."""
    return report(load(*folders), None, [section for section in SECTIONS if section.name == only or not only])


def names(found: Report) -> list[str]:
    return [picture.name for picture in found.pictures]


def sections(html: str) -> list[str]:
    return re.findall(r'<section id="([\w-]+)">', html)


def test_a_comparison_of_real_runs(simulate: Simulate, tmp_path: Path) -> None:
    """Groups by algorithm, of which one has runs of two seeds; a page, and each of its figures as a file."""
    for algorithm, seed in (("fedavg", 0), ("fedavg", 1), ("fedbuff", 0)):
        runs = simulate(digits(algorithm=algorithm), "--set", f"seed={seed}").folder.parent
    answer = told(runs, "-o", tmp_path / "page.html", "--svg", tmp_path / "figures")
    figures = sorted((tmp_path / "figures").iterdir())
    assert (answer.exit_code, answer.stdout) == (0, f"{len(figures)} figures in {tmp_path / 'page.html'}\n")
    html = (tmp_path / "page.html").read_text()
    shown = ("best", "runs", "curves", "partition", "dispatches", "staleness", "timeline", "updates")
    assert sections(html) == [*shown]
    assert "Band: from their smallest to their largest value." in html
    assert "at common" not in html and "with rounds at most 8 of the global model" in html
    for file in figures:
        assert f'<figure id="{file.stem}"' in html
        ElementTree.fromstring(file.read_text())


def test_a_page_needs_nothing_beside_it(tmp_path: Path) -> None:
    """No address and no script, and every id is there once. It is always the same."""
    made(tmp_path / "a", peers(5) | {"steps": [step(1, 10, 0.5)]})
    made(tmp_path / "b", peers(4), {"algorithm": {"name": "other"}})
    found = made_of(tmp_path)
    html = load(tmp_path).report(tmp_path / "page.html").read_text()
    assert html == found.html
    assert {"runs", "curves", "members", "ends", "topology", "links"} <= {*sections(html)}
    assert {"curves-consensus-test-round", "members-peer-accuracy-test", "topology-0"} <= {*names(found)}
    assert "<script" not in html and not re.findall(r'(?:href|src)="(?!#|data:)', html)
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids)) > 10


def test_points_of_curves_are_means_over_seeds(tmp_path: Path) -> None:
    """Bytes and seconds are those of the steps up to the evaluation; none before the first step."""
    values = {0: (0.1, 0.3), 1: (0.2, 0.8)}
    for seed, (early, late) in values.items():
        evaluations = [evaluation(0, early), evaluation(2, late, virtual_time=5.0 + seed)]
        steps = [step(1, 10 * (seed + 1), 1.0), step(2, 100, 2.0 + seed), step(3, 1000, 9.0)]
        made(tmp_path / f"s{seed}", {"evaluations": evaluations, "steps": steps}, {"seed": seed})
    groups = grouped(load(tmp_path))
    table = points(groups, evaluated(groups))
    found = table[["group", "round", "mean", "min", "max", "virtual_time", "bytes", "seconds"]].to_numpy().tolist()
    assert found == [
        pytest.approx([0, 0, 0.15, 0.1, 0.2, 0.0, 0.0, 0.0]),
        pytest.approx([0, 2, 0.55, 0.3, 0.8, 5.5, (220 + 240) / 2, 2.5]),
    ]


def test_each_line_has_the_points_at_which_its_own_runs_were_evaluated(tmp_path: Path) -> None:
    timed = {"algorithm": {"name": "timed"}, "run": {"evaluate_every": {"virtual_time": 5.0}}}
    for seed, rounds in enumerate(((1, 2), (2, 4))):
        rows = [evaluation(of, 0.1 * of, virtual_time=5.0 * n) for n, of in enumerate(rounds, 1)]
        made(tmp_path / f"t{seed}", {"evaluations": rows}, timed | {"seed": seed})
    made(tmp_path / "r", {"evaluations": [evaluation(3, 0.5, virtual_time=7.0)]}, {"algorithm": {"name": "rounds"}})
    groups = grouped(load(tmp_path))
    found = points(groups, evaluated(groups))
    times = {groups.label(place): rows["virtual_time"].tolist() for place, rows in found.groupby("group")}
    assert times == {"timed": [5.0, 10.0], "rounds": [7.0]}


def test_a_mean_over_runs_is_not_that_of_the_others_if_one_of_them_has_nan(tmp_path: Path) -> None:
    """As in comparisons: else a line would go on as if no run had diverged."""
    for seed, late in enumerate((0.5, math.nan)):
        losses = [evaluation(1, 2.0, metric="loss"), evaluation(2, late, metric="loss")]
        made(tmp_path / f"s{seed}", {"evaluations": losses}, {"seed": seed})
    groups = grouped(load(tmp_path))
    found = points(groups, evaluated(groups))[["mean", "min", "max"]].to_numpy().tolist()
    assert found == [[2.0] * 3, pytest.approx([math.nan] * 3, nan_ok=True)]
    assert "Lines have gaps where a value is NaN or infinite." in made_of(tmp_path, only="curves").html


def private(folder: Path, method: str, seed: int, epsilon: float | None, value: float) -> Path:
    """A run that ends with an accuracy. epsilon: of its most exposed client; None: it has no noise."""
    privacy = None if epsilon is None else {"delta": 1e-5, "epsilon": epsilon}
    scenario = {"seed": seed, "algorithm": {"name": method}, "privacy": privacy}
    rows: Rows = {"evaluations": [evaluation(0, 0.1), evaluation(1, value)]}
    return made(folder / f"{method}-{seed}-{epsilon}", rows, scenario, privacy=privacy)


def test_utility_against_epsilon(tmp_path: Path) -> None:
    """A line for each method, whose points are means over seeds, and a dashed one for its runs without noise."""
    for method, gain in (("fedavg", 0.0), ("fedbuff", 0.1)):
        for seed in (0, 1):
            for epsilon, value in ((8.0, 0.6), (2.0, 0.3), (None, 0.8)):
                private(tmp_path, method, seed, epsilon, value + gain + seed / 50)
    private(tmp_path, "fedavg", 2, 8.0, 0.7)
    groups, (picture,) = grouped(load(tmp_path)), made_of(tmp_path, only="utility").pictures
    assert picture.name == "utility-accuracy-test" and picture.caption.endswith("Dashed: without noise.")
    axes, rows = Figure().subplots(), evaluated(groups)
    draw.against_epsilon(axes, groups, rows, "epsilon")
    lines = {box.get_label(): [line.tolist() for line in box.lines[0].get_data()] for box in axes.containers}
    assert lines["fedavg"] == [[2.0, 8.0], approx([0.31, (0.6 + 0.62 + 0.7) / 3])]
    assert lines["fedbuff"] == [[2.0, 8.0], approx([0.41, 0.71])]
    dashed = [line.get_ydata()[0] for line in axes.lines if line.get_linestyle() == "--"]
    assert dashed == approx([0.81, 0.91])


def test_runs_without_privacy_have_no_utility_against_epsilon(tmp_path: Path) -> None:
    assert not made_of(private(tmp_path, "fedavg", 0, None, 0.5), only="utility").pictures


def test_clients_models_are_sections_of_their_own(simulate: Simulate) -> None:
    folder = simulate(digits(data__local_test=0.2, data__unseen=0.2, run__evaluate_clients=10)).folder
    own = [f"{subject}-{metric}-test" for subject in ("client", "unseen") for metric in ("accuracy", "loss")]
    assert sorted(names(made_of(folder, only="members"))) == [f"members-{name}" for name in own]
    assert sorted(names(made_of(folder, only="ends"))) == [f"ends-{name}" for name in own]


def test_models_of_several_sizes_have_a_figure_for_each_metric(tmp_path: Path) -> None:
    """With a line for each level, and one for the whole model."""
    rows = [
        evaluation(number, value, **which)
        for number in (1, 2)
        for metric, value in (("loss", 2.0), ("accuracy", 0.5))
        for which in ({"metric": metric}, {"metric": metric, "subject": "slice", "member": 1, "level": 0.5})
    ]
    found = made_of(made(tmp_path / "run", {"evaluations": rows}), only="levels")
    assert sorted(names(found)) == ["levels-slice-accuracy-test-0", "levels-slice-loss-test-0"]
    assert all("whole model" in one.svg and "level 0.5" in one.svg for one in found.pictures)


def test_lines_of_more_models_than_there_are_colours_differ(tmp_path: Path) -> None:
    """In dashes and markers, where colours come again."""
    of = [{"member": k, "subject": "slice", "level": 1 / 2**k} for k in range(9)]
    slices = [evaluation(number, 0.5, **which) for number in (1, 2) for which in of]
    run = made(tmp_path / "run", {"evaluations": slices})
    groups, axes = grouped(load(run)), Figure().subplots()
    draw.by_model(axes, groups, groups.placed(load(run).pandas("evaluations")), "value")
    looks = {(line.get_color(), line.get_linestyle(), line.get_marker()) for line in axes.lines}
    assert len(looks) == len(axes.lines) == 10


def test_models_of_several_architectures_have_a_line_for_each_group(simulate: Simulate) -> None:
    """And their places in `clients` are not drawn as numbers that an algorithm logged."""
    groups = [
        {"name": "tiny", "number": 8, "model": {"name": "mlp", "hidden": [4]}},
        {"name": "deep", "number": 8, "model": {"name": "mlp", "hidden": [8, 8]}},
    ]
    more: Raw = {"data__local_test": 0.2, "run__evaluate_clients": "all", "run__rounds": 2}
    result = simulate(digits(algorithm="knn_per", clients=groups, **more))
    found = {one.name: one for one in made_of(result.folder, only="levels").pictures}
    of = {subject: found[f"levels-{subject}-accuracy-test-0"] for subject in ("client", "group")}
    assert len(found) == 4 and all("tiny" in one.svg and "deep" in one.svg for one in of.values())
    assert "own" in of["group"].svg and "in no group" in of["client"].svg and "3 groups" in of["client"].caption
    assert not made_of(result.folder, only="own-updates").pictures


@pytest.mark.parametrize(("peers", "topology", "changes"), [(2, "complete", False), (6, "matching", True)])
def test_a_graph_that_changes_is_told(peers: int, topology: str, changes: bool, simulate: Simulate) -> None:
    run = simulate(centers([[0.0]] * peers, 9, topology=topology)).folder
    (picture,) = made_of(run, only="topology").pictures
    edges = f"{peers} peers, {peers} directed edges in round 0. Over each line both peers send."
    assert picture.caption.startswith(edges) and ("Later rounds have others: " in picture.caption) == changes


def test_peers_have_a_topology_and_a_distance(tmp_path: Path) -> None:
    few = made(tmp_path / "few", peers(6))
    topology, links = (made_of(few, only=name).html for name in ("topology", "links"))
    assert "6 peers, 6 directed edges in round 0. An arrow leads to the peer that is sent to." in topology
    assert "6 links, over which 307.5 bytes were sent on average, and 315 from peer 5 to peer 0" in links
    assert "201 peers" in made_of(made(tmp_path / "many", peers(201, 1)), only="topology").html


def test_coefficients_are_a_section_of_their_own(tmp_path: Path) -> None:
    """Those that are not numbers are counted."""
    found = [
        {**when(t), "anchor": 0, "client": 0, "arrived": t, "coefficient": value, "fallback": 0.1, "norm": 1.0}
        for t, value in enumerate((0.5, math.nan))
    ]
    some = made_of(made(tmp_path / "some", {"coefficients": found}), only="coefficients")
    assert names(some) == ["coefficients-coefficient", "coefficients-fallback", "coefficients-norm"]


def test_staleness_and_what_became_of_dispatches(tmp_path: Path) -> None:
    for name, ages in (("fedasync", (1, 3)), ("fedavg", (0, 0))):
        rows = [update(place, staleness=age) for place, age in enumerate(ages)]
        made(tmp_path / name, {"updates": rows}, {"algorithm": {"name": name}})
    assert made_of(tmp_path, only="staleness").pictures[0].caption == "Mean 1, largest 3."
    assert made_of(tmp_path, only="dispatches").pictures[0].caption == "4 used"


def test_runs_that_did_not_finish_are_named(tmp_path: Path) -> None:
    accuracy: Rows = {"evaluations": [evaluation(1, 0.5)]}
    made(tmp_path / "a", accuracy, status="failed", error="client 3: <b>out of memory</b>\nTraceback: ...")
    made(tmp_path / "b", accuracy, {"seed": 1}, status="interrupted")
    html = made_of(tmp_path, only="curves").html
    assert "a: client 3: &lt;b&gt;out of memory&lt;/b&gt;" in html and "<td>interrupted</td>" in html
    assert "best" not in sections(html)  # no run is over


def test_a_run_that_wrote_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    write_json(folder, {"run": "a", "status": "failed", "error": "no data"})
    html = made_of(folder).html
    assert sections(html) == ["runs"]
    assert "no data" in html and "<figure" not in html


def test_groups_are_told_apart_by_few_keys(tmp_path: Path) -> None:
    """Not by seed, name or resources; names of parts come before their parameters."""
    varied: list[dict[str, Any]] = [
        {"algorithm": {"name": "fedavg"}},
        {"algorithm": {"name": "fedavg"}, "seed": 1, "name": "other", "resources": {"client_actors": 9}},
        {"algorithm": {"name": "fedbuff", "buffer": 5, "exponent": 0.5}},
        {"algorithm": {"name": "fedbuff", "buffer": 10, "exponent": 0.5}},
    ]
    for place, scenario in enumerate(varied):
        made(tmp_path / f"r{place}", {}, scenario)
    groups = grouped(load(tmp_path)).groups
    assert [group.label for group in groups] == ["fedavg", "fedbuff, buffer=5", "fedbuff, buffer=10"]
    assert [len(group.runs) for group in groups] == [2, 1, 1]
    by = grouped(load(tmp_path), ["algorithm.buffer"]).groups
    assert [group.label for group in by] == ["no buffer", "buffer=5", "buffer=10"]
    with pytest.raises(NotComparable, match="must differ in seed only, got several values of algorithm"):
        report(load(tmp_path), ["algorithm"])


def test_where_scenarios_differ_and_what_they_share(tmp_path: Path) -> None:
    shared = {"data": {"clients": 5, "shape": [1, 2]}, "world": {"picks": None}}
    made(tmp_path / "a", {}, {**shared, "algorithm": {"name": "fedavg"}})
    made(tmp_path / "b", {}, {**shared, "algorithm": {"name": "fedbuff", "buffer": 5}})
    html = made_of(tmp_path, only="curves").html
    differ = html[html.index("Where the scenarios differ") :]
    assert re.findall(r"<td>(.*?)</td>", differ[: differ.index("</table>")]) == ["algorithm.name", "fedavg", "fedbuff"]
    text = html.split("<pre>")[1].split("</pre>")[0]
    assert "shape: [1, 2]" in text and "clients: 5" in text and "algorithm" not in text


def test_a_scenario_that_ran_again_is_drawn_once(tmp_path: Path) -> None:
    """Where a scenario ran several times with a seed, the run that finished counts."""
    whole: Rows = {"evaluations": [evaluation(1, 0.5), evaluation(2, 0.9)]}
    made(tmp_path / "a", {"evaluations": [evaluation(1, 0.4)]}, status="running", scenario_hash="same")
    made(tmp_path / "b", whole, scenario_hash="same")
    made(tmp_path / "c", {"evaluations": [evaluation(1, 0.3)]}, status="failed", scenario_hash="same")
    groups = grouped(load(tmp_path))
    assert [run.id for run in groups.groups[0].drawn] == ["b"]
    assert points(groups, evaluated(groups))["mean"].tolist() == [0.5, 0.9]


def test_values_that_are_not_numbers_are_counted(tmp_path: Path) -> None:
    losses = (2.0, math.inf, math.nan, None)
    updates = [update(number, loss_after=loss) for number, loss in enumerate(losses)]
    found = made_of(made(tmp_path / "a", {"updates": updates}), only="updates")
    lost = {picture.name: picture.caption for picture in found.pictures if "left out" in picture.caption}
    assert lost == {"updates-loss-after": "1 values that are NaN or infinite are left out."}


def test_columns_of_the_algorithms_own_are_drawn(tmp_path: Path) -> None:
    writer = Writer(tmp_path, "a")
    writer.add(UpdateRow(**update(0)), {"next_penalty": 2.0})
    writer.close()
    about = {"run": "a", "name": "own", "status": "finished", "seed": 0, "scenario_hash": "a"}
    write_json(tmp_path, {**about, "scenario": {"name": "own", "seed": 0, "algorithm": {"name": "own:ADMM"}}})
    assert names(made_of(tmp_path, only="own-updates")) == ["own-updates-next-penalty"]


def test_no_more_runs_are_shown_one_by_one_than_fit_and_equal_ones_once(tmp_path: Path) -> None:
    for place in range(8):
        made(tmp_path / f"r{place}", peers(3 + place), {"algorithm": {"name": f"a{place}"}})
    made(tmp_path / "same", peers(3), {"algorithm": {"name": "a00"}})
    found = made_of(tmp_path, only="topology")
    assert "Shown is the first run of each group." in found.html
    assert names(found) == [f"topology-{place}" for place in range(6)]
    assert names(made_of(tmp_path / "same", tmp_path / "r0", only="topology")) == ["topology-0"]


def test_what_is_refused(tmp_path: Path) -> None:
    """With a message and exit code 2."""
    folder, nowhere = made(tmp_path / "a", {}), tmp_path / "nowhere"
    answers = {
        "must be a folder of runs, but there is none": told(nowhere, "-o", tmp_path / "x.html"),
        "bufer: must be a key of the runs' scenarios": told(folder, "-o", tmp_path / "x.html", "--by", "bufer"),
    }
    for message, answer in answers.items():
        assert answer.exit_code == 2
        assert message in answer.stderr and answer.stderr.count("\n") == 1
    with pytest.raises(CannotWrite, match=r"run\.json/x\.html: cannot be written"):
        report(Runs(load(folder).runs), sections=[CURVES]).write(folder / "run.json" / "x.html")


def test_groups_that_a_headline_leaves_out_are_counted(tmp_path: Path) -> None:
    for name, status in (("fedavg", "finished"), ("fedbuff", "finished"), ("fedprox", "killed")):
        compared_runs.made(tmp_path / name, {"algorithm": {"name": name}}, [0.1, 0.5], status=status)
    shown = headline(grouped(load(tmp_path)))
    assert "left out: 1 group of runs" in shown and "fedprox" not in shown
