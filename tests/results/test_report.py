"""The report: a page of what the runs' tables hold, and of nothing else."""

import math
import os
import re
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pyarrow.compute as pc
import pytest
from command_line import command
from conftest import Simulate, digits
from reported_runs import Rows, evaluation, made, peers, step, when
from table_rows import update
from typer.testing import Result

from results import CannotWrite, NotComparable, Writer, load, style, write_json
from results.groups import grouped
from results.report import Report, report
from results.report.columns import coefficients, of_all_clients
from results.report.curves import points
from results.report.dispatches import staleness
from results.report.members import members, over_rounds
from results.report.partition import divergences
from results.report.topology import topology
from results.runs import Runs
from results.schemas import PartitionRow, UpdateRow

ALL = "results.report.page.SECTIONS"  # those that a page may have; drawing takes most of a test's time


@pytest.fixture(scope="module")
def of_two_runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Runs of peers with two algorithms."""
    folder = tmp_path_factory.mktemp("two")
    made(folder / "a", peers(5) | {"steps": [step(1, 10, 0.5)]})
    made(folder / "b", peers(4), {"algorithm": {"name": "other"}})
    return load(folder)


@pytest.fixture(scope="module")
def of_two(of_two_runs: Runs) -> Report:
    return report(of_two_runs)


def told(*arguments: str | Path) -> Result:
    """What the command answers."""
    return command("report", *arguments)


def page(*runs: Path, by: list[str] | None = None) -> str:
    return report(load(*runs), by).html


def sections(html: str) -> list[str]:
    return re.findall(r'<section id="(\w+)">', html)


def rows(html: str, heading: str) -> list[list[str]]:
    """The cells of the first table after a heading."""
    table = html[html.index(heading) :]
    table = table[: table.index("</table>")]
    plain = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in table.split("<tr>")[1:]]
    return [[re.sub(r"<[^>]*>", "", cell) for cell in row] for row in plain]


def test_a_comparison_of_real_runs(simulate: Simulate, tmp_path: Path) -> None:
    """Groups by algorithm, of which one has runs of two seeds; a page, and each of its figures as a file."""
    for algorithm, seed in (("fedavg", 0), ("fedavg", 1), ("fedbuff", 0)):
        runs = simulate(digits(algorithm=algorithm), "--set", f"seed={seed}").folder.parent
    answer = told(runs, "-o", tmp_path / "page.html", "--svg", tmp_path / "figures")
    figures = sorted((tmp_path / "figures").iterdir())
    assert (answer.exit_code, answer.stdout) == (0, f"{len(figures)} figures in {tmp_path / 'page.html'}\n")
    html = (tmp_path / "page.html").read_text()
    assert load(runs).report(tmp_path / "again.html").read_text() == html
    assert sections(html) == [
        *("verdict", "runs", "curves", "budgets", "partition", "staleness", "timeline", "updates", "real_time")
    ]
    assert [row[:4] for row in rows(html, "What ran")[1:]] == [
        ["fedavg", "2", "0, 1", "finished"],
        ["fedbuff", "1", "0", "finished"],
    ]
    assert "Band: from their smallest to their largest value." in html
    for file in figures:
        assert f'<figure id="{file.stem}"' in html
        ElementTree.fromstring(file.read_text())


def test_a_page_needs_nothing_beside_it(of_two: Report, of_two_runs: Runs) -> None:
    """No address; every reference is to something on the page, and every id is there once. It is always the same. Its
    script is in it, and asks for nothing."""
    html = of_two.html
    assert html == page(*(run.folder for run in of_two_runs.runs))
    assert not re.search(r'(?:href|src)="(?!#|data:)', re.sub(r"data:[^\"]*", "data:", html))
    assert "url(http" not in html and "@import" not in html and "<script src" not in html
    assert not re.search(r"fetch\(|XMLHttpRequest|import\(|https?://(?!www.w3.org/2000/svg)", html.split("<script>")[1])
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids)) > 50
    assert set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', html)) <= {
        pair for id in ids for pair in ((id, ""), ("", id))
    }


def test_figures_take_their_colours_from_the_page(of_two: Report) -> None:
    for picture in of_two.pictures:
        assert set(re.findall("#[0-9a-f]{6}", picture.svg)) <= {light for light, _ in style.variables().values()}
        assert not re.search("#[0-9a-f]{6}", picture.inline)
        assert set(re.findall(r"var\(--(\w+)\)", picture.inline)) <= {"font", *style.variables()}


@pytest.mark.parametrize(("background", "which"), [("#ffffff", 0), ("#17181a", 1)])
def test_colours_stand_out_from_the_page(background: str, which: int) -> None:
    """WCAG 2.1: a contrast of 4.5 for text, of 3 for lines."""
    for name, pair in style.variables().items():
        wanted = {"ink": 4.5, "muted": 4.5, "grid": 1.0}.get(name, 3.0)
        lights = sorted(luminance(colour) for colour in (background, pair[which]))
        assert (lights[1] + 0.05) / (lights[0] + 0.05) >= wanted, name


def luminance(colour: str) -> float:
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_points_of_curves_are_means_over_seeds(tmp_path: Path) -> None:
    """Bytes and seconds are those of the steps up to the evaluation; none before the first step."""
    values = {0: (0.1, 0.3), 1: (0.2, 0.8)}
    for seed, (early, late) in values.items():
        evaluations = [evaluation(0, early), evaluation(2, late, virtual_time=5.0 + seed)]
        steps = [step(1, 10 * (seed + 1), 1.0), step(2, 100, 2.0 + seed), step(3, 1000, 9.0)]
        made(tmp_path / f"s{seed}", {"evaluations": evaluations, "steps": steps}, {"seed": seed})
    table = points(grouped(load(tmp_path)))
    found = table[["group", "round", "mean", "min", "max", "virtual_time", "bytes", "seconds"]].to_numpy().tolist()
    assert found == [
        pytest.approx([0, 0, 0.15, 0.1, 0.2, 0.0, 0.0, 0.0]),
        pytest.approx([0, 2, 0.55, 0.3, 0.8, 5.5, (220 + 240) / 2, 2.5]),
    ]


def test_axes_that_were_not_measured_are_left_out(tmp_path: Path) -> None:
    made(tmp_path / "a", {"evaluations": [evaluation(1, 0.5), evaluation(2, 0.6)]})
    made(tmp_path / "b", {"evaluations": [evaluation(1, 0.5)], "steps": [step(1, None, 0.5)]}, {"seed": 1})
    assert re.findall(r'"accuracy-test-by-([a-z-]+)"', page(tmp_path / "a")) == ["round", "virtual-time"]
    assert re.findall(r'"accuracy-test-by-([a-z-]+)"', page(tmp_path)) == ["round", "virtual-time", "seconds"]


def test_a_run_of_one_round_has_its_figure_by_round(tmp_path: Path) -> None:
    """Its only round is 0, which is no axis that was not measured."""
    html = page(made(tmp_path / "a", {"evaluations": [evaluation(0, 0.5, step=1, virtual_time=1.0)]}))
    there = [f'id="accuracy-test-by-{axis}"' in html for axis in ("round", "virtual-time", "bytes")]
    assert there == [True, True, False]


def test_means_and_ranges_of_a_group(tmp_path: Path) -> None:
    for seed, value in enumerate((0.5, 0.7)):
        made(tmp_path / f"s{seed}", {"evaluations": [evaluation(1, 0.9), evaluation(2, value)]}, {"seed": seed})
    head, row = rows(page(tmp_path), "What ran")
    cells = dict(zip(head, row, strict=True))
    assert cells["accuracy, last"] == "0.6 (0.5 to 0.7)"
    assert cells["updates used"] == cells["sent up and down"] == "-"


def test_clients_models_are_a_section_of_their_own(simulate: Simulate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ALL, (members,))
    html = page(simulate(digits(data__local_test=0.2, data__unseen=0.2, run__evaluate_clients=10)).folder)
    assert "members" in sections(html)
    for kind in ("spread", "worst", "gap"):
        assert f'id="client-accuracy-test-{kind}"' in html
    assert re.findall(r'"unseen-accuracy-test-([a-z]+)"', html) == ["end"]  # they are evaluated once
    assert "The last evaluation of all unseen clients of all runs" in html


def test_peers_have_a_topology_and_a_distance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    html = page(made(tmp_path / "few", peers(6)))
    assert sections(html) == ["runs", "curves", "members", "topology"]
    assert re.findall(r'"([a-z_-]+)-test-by-round"', html) == ["accuracy"]
    assert 'id="consensus"' in html and 'id="peer-accuracy-test-worst"' in html
    assert "6 peers, 6 directed edges in round 0. Over a line both peers send, along an arrow only one." in html
    assert "6 edges carried 0.001845 MB in all rounds" in html
    monkeypatch.setattr(ALL, (topology,))
    html = page(made(tmp_path / "many", peers(201, 1)))
    assert "201 peers, too many to draw" in html and 'id="topology-0"' not in html


def test_coefficients_are_a_section_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are not numbers are counted, also where there is no other: that a run diverged ends no report."""
    monkeypatch.setattr(ALL, (coefficients,))
    for name, number in {"some": 0.5, "all": math.nan}.items():
        found = [
            {**when(t), "anchor": 0, "client": 0, "arrived": t, "coefficient": value, "fallback": 0.1, "norm": 1.0}
            for t, value in enumerate((number, math.nan))
        ]
        made(tmp_path / name, {"coefficients": found})
    some, every = page(tmp_path / "some"), page(tmp_path / "all")
    figures = ["coefficient", "fallback", "negative", "norm"]
    assert re.findall(r'<figure id="coefficients-(\w+)"', some) == figures
    assert re.findall(r'<figure id="coefficients-(\w+)"', every) == ["fallback", "norm"]
    assert "1 values that are NaN or infinite are left out." in some


def test_a_slow_node_is_seen(tmp_path: Path) -> None:
    """Node b has two workers and a, like every inline run, has one; figures are means over workers."""

    def task(worker: int, node: str, seconds: float) -> dict[str, Any]:
        where = {"worker": f"client-{worker}", "node": node, "pid": worker}
        return {**when(1), **where, "task": "train", "started_s": 0.0, "seconds": seconds}

    tasks = [task(0, "a", 0.5), task(0, "a", 0.7), task(1, "b", 2.0), task(2, "b", 3.0)]
    workers = [{"worker": "client-0", "node": "a", "host": "a"}, {"worker": "client-1", "node": "b", "host": "slow"}]
    html = page(made(tmp_path / "several", {"tasks": tasks}, workers=workers))
    assert "The median task of kind train took 0.6 s on a, and 2.5 s on b (slow)." in html
    assert 'id="real-time-nodes-0"' in html
    assert 'id="real-time-nodes-0"' not in page(made(tmp_path / "one", {"tasks": tasks[:2]}))


def test_a_dry_run_of_peers_has_a_topology_without_bytes(simulate: Simulate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ALL, (topology,))
    html = page(simulate(digits(algorithm="decfedavg", topology="ring", world={}), "--dry").folder)
    assert "30 peers, 60 directed edges in round 0" in html
    assert "Bytes per edge" not in html


def test_staleness_is_told_by_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean and the largest of its used updates; a line ends where its group has no more."""
    monkeypatch.setattr(ALL, (staleness,))
    for name, ages in (("fedasync", (1, 3)), ("fedavg", (0, 0))):
        rows = [update(place, staleness=age) for place, age in enumerate(ages)]
        made(tmp_path / name, {"updates": rows}, {"algorithm": {"name": name}})
    assert "Mean and largest: fedasync: 2, 3; fedavg: 0, 0." in page(tmp_path)


def test_what_became_of_dispatches_is_in_full_beside_a_long_label(tmp_path: Path) -> None:
    for place in range(2):
        made(tmp_path / str(place), {"updates": [update(place)]}, {"algorithm": {"name": f"{place}{'long' * 40}"}})
    assert re.search(r"0(long){5,15}\w*\.\.\.\w*: 1 used", page(tmp_path))


def test_runs_that_did_not_finish_are_marked(tmp_path: Path) -> None:
    accuracy: Rows = {"evaluations": [evaluation(1, 0.5)]}
    error = "client 3: <b>out of memory</b>\nTraceback: ..."
    made(tmp_path / "a", accuracy, status="failed", error=error)
    made(tmp_path / "b", accuracy, {"seed": 1}, status="interrupted")
    made(tmp_path / "c", accuracy, {"seed": 2}, status="running")
    killed = made(tmp_path / "d", accuracy, {"seed": 3}, status="running")
    for path in (killed, *killed.rglob("*")):
        os.utime(path, (0, time.time() - 3600))
    html = page(tmp_path)
    (group,) = rows(html, "What ran")[1:]
    assert group[3] == "1 failed, 1 interrupted, 1 running, 1 killed?"
    lines = rows(html, "Why each run ended: 1 failed, 1 interrupted, 1 killed?, 1 running")[1:]
    assert [line[1] for line in lines] == ["failed", "interrupted", "killed?", "running"]
    assert lines[0][2].startswith("client 3: &lt;b&gt;out of memory&lt;/b&gt;")
    assert lines[1][2].endswith("What mostly helps: go on with `raysim resume`, or declare it over with `raysim end`")
    assert lines[2][2].startswith("probably killed, last written 20")
    assert html.count('class="alarm"') == 3


def test_a_run_that_wrote_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    write_json(folder, {"run": "a", "status": "failed", "error": "no data"})
    html = page(folder)
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
        page(tmp_path, by=["algorithm"])


def test_where_scenarios_differ_and_what_they_share(tmp_path: Path) -> None:
    shared = {"data": {"clients": 5, "shape": [1, 2]}, "world": {"picks": None}}
    made(tmp_path / "a", {}, {**shared, "algorithm": {"name": "fedavg"}})
    made(tmp_path / "b", {}, {**shared, "algorithm": {"name": "fedbuff", "buffer": 5}})
    html = page(tmp_path)
    assert rows(html, "Where the scenarios differ") == [
        ["key", "fedavg", "fedbuff"],
        ["algorithm.name", "fedavg", "fedbuff"],
        ["algorithm.buffer", "", "5"],
    ]
    text = html.split("<pre>")[1].split("</pre>")[0]
    assert text == "name: made\nseed: 0\ndata:\n  clients: 5\n  shape: [1, 2]\nworld:\n  picks: null"


def test_a_scenario_that_ran_again_is_drawn_once(tmp_path: Path) -> None:
    """Where a scenario ran several times with a seed, the run that finished counts; all are listed."""
    whole: Rows = {"evaluations": [evaluation(1, 0.5), evaluation(2, 0.9)]}
    made(tmp_path / "a", {"evaluations": [evaluation(1, 0.4)]}, status="running", scenario_hash="same")
    made(tmp_path / "b", whole, scenario_hash="same")
    made(tmp_path / "c", {"evaluations": [evaluation(1, 0.3)]}, status="failed", scenario_hash="same")
    runs = load(tmp_path)
    (group,) = grouped(runs).groups
    assert [run.id for run in group.drawn] == ["b"]
    assert points(grouped(runs))["mean"].tolist() == [0.5, 0.9]
    assert len(rows(page(tmp_path), "Why each run ended")) == 4


def test_values_that_are_not_numbers_leave_gaps(tmp_path: Path) -> None:
    """A run that diverged is reported all the same."""
    values = [0.5, math.nan, math.inf]
    html = page(made(tmp_path / "a", {"evaluations": [evaluation(t, v, metric="loss") for t, v in enumerate(values)]}))
    assert 'id="loss-test-by-round"' in html
    assert "Lines have gaps where the value of a run is NaN or infinite." in html


def test_a_mean_over_runs_is_not_that_of_the_others_if_one_of_them_has_nan(tmp_path: Path) -> None:
    """As in comparisons: else a line would go on as if no run had diverged."""
    for seed, late in enumerate((0.5, math.nan)):
        losses = [evaluation(1, 2.0, metric="loss"), evaluation(2, late, metric="loss")]
        made(tmp_path / f"s{seed}", {"evaluations": losses}, {"seed": seed})
    found = points(grouped(load(tmp_path)))[["mean", "min", "max"]].to_numpy().tolist()
    assert found == [[2.0] * 3, pytest.approx([math.nan] * 3, nan_ok=True)]
    head, row = rows(page(tmp_path), "What ran")
    assert dict(zip(head, row, strict=True))["loss, last"] == "nan"


def test_a_member_with_nan_counts_and_one_without_a_value_does_not(tmp_path: Path) -> None:
    """Its NaN is that of the mean and of the worst, as in comparisons; who has no samples is left out."""
    losses = {1: (2.0, 4.0, None), 2: (2.0, math.nan, None)}
    rows = [
        evaluation(t, loss, peer, metric="loss") for t, of_all in losses.items() for peer, loss in enumerate(of_all)
    ]
    groups = grouped(load(made(tmp_path / "a", {"evaluations": rows})))
    found = over_rounds(
        groups.frame("evaluations", ["round", "virtual_time", "value"], pc.is_valid(pc.field("value"))), "round"
    )
    assert found[["mean", "max", "gap"]].to_numpy().tolist() == [
        [3.0, 4.0, 2.0],
        pytest.approx([math.nan] * 3, nan_ok=True),
    ]
    assert "Lines have gaps" in page(tmp_path)


def test_a_run_without_any_update_counts_in_the_mean_of_its_group(tmp_path: Path) -> None:
    for seed, updates in enumerate(([update(0), update(1)], [])):
        made(tmp_path / f"s{seed}", {"updates": updates, "steps": [step(1, 10 * len(updates), 1.0)]}, {"seed": seed})
    cells = dict(zip(*rows(page(tmp_path), "What ran"), strict=True))
    assert (cells["updates used"], cells["sent up and down"]) == ("1 (0 to 2)", "20 bytes")


def test_values_that_quantiles_leave_out_are_counted(tmp_path: Path) -> None:
    losses = (2.0, math.inf, math.nan, None)
    updates = [update(number, loss_after=loss, loss_before=math.inf) for number, loss in enumerate(losses)]
    html = page(made(tmp_path / "a", {"updates": updates}))
    assert re.findall(r"[\d,]+ values that are NaN or infinite are left out", html) == [
        "2 values that are NaN or infinite are left out"
    ]
    assert 'id="updates-loss-after"' in html and 'id="updates-loss-before"' not in html


def test_penalties_are_drawn_for_algorithms_that_have_a_first_one(tmp_path: Path) -> None:
    """An algorithm of one's own may log a number of the same name."""
    writer = Writer(tmp_path, "a")
    writer.add(UpdateRow(**update(0)), {"next_penalty": 2.0})
    writer.close()
    about = {"run": "a", "name": "own", "status": "finished", "seed": 0, "scenario_hash": "a"}
    write_json(tmp_path, {**about, "scenario": {"name": "own", "seed": 0, "algorithm": {"name": "own:ADMM"}}})
    html = page(tmp_path)
    assert 'id="own-updates-next-penalty"' in html
    assert "updates-penalties-of-all" not in html


def test_a_penalty_that_is_not_a_number_is_that_of_the_mean(tmp_path: Path) -> None:
    """The client's last one that was finite would look as if nothing had happened."""
    penalties = [(0, 2.0), (1, 4.0), (0, math.nan), (1, 8.0)]
    writer = Writer(tmp_path, "a")
    for number, (client, penalty) in enumerate(penalties):
        row = update(number, **when(number // 2), client=client, status="used")
        writer.add(UpdateRow(**row), {"next_penalty": penalty})
    for client in (0, 1):
        writer.add(PartitionRow(client=client, split="train", label=0, samples=10))
    writer.close()
    about = {"run": "a", "name": "own", "status": "finished", "seed": 0, "scenario_hash": "a"}
    scenario = {"name": "own", "seed": 0, "algorithm": {"name": "fedadmm_insa", "beta": 1.0}}
    write_json(tmp_path, {**about, "scenario": scenario})
    (run,) = load(tmp_path).runs
    found = of_all_clients(run, run.table("updates", ["round", "client", "next_penalty"]).to_pandas())
    assert found[["mean", "min", "max"]].to_numpy().tolist() == [
        [3.0, 2.0, 4.0],
        pytest.approx([math.nan] * 3, nan_ok=True),
    ]
    html = page(tmp_path)
    assert "Band: from the smallest to the largest. Lines have gaps" in html


def test_no_more_runs_are_shown_one_by_one_than_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ALL, (topology,))
    for place in range(8):
        made(tmp_path / f"r{place}", peers(3), {"algorithm": {"name": f"a{place}"}})
    html = page(tmp_path)
    assert "Shown is the first run of each of the first 6 groups, of 8." in html
    assert len(re.findall('<figure id="topology-', html)) == 6


def test_what_is_refused(tmp_path: Path) -> None:
    """With a message and exit code 2; what cannot be written, before anything is read."""
    folder, nowhere = made(tmp_path / "a", {}), tmp_path / "nowhere"
    answers = {
        "must be a folder of runs, but there is none": told(nowhere, "-o", tmp_path / "x.html"),
        "bufer: must be a key of the runs' scenarios": told(folder, "-o", tmp_path / "x.html", "--by", "bufer"),
        "must be a file, and is not": told(nowhere, "-o", tmp_path),
        "must be a folder, and is not": told(nowhere, "-o", tmp_path / "x.html", "--svg", Path(__file__)),
        "x.html: must be in a folder that exists": told(nowhere, "-o", nowhere / "x.html"),
        "y: must be in a folder that exists": told(nowhere, "-o", tmp_path / "x.html", "--svg", nowhere / "y"),
        f"written to, got {__file__}; take another": told(folder, "-o", Path(__file__, "x.html")),
    }
    for message, answer in answers.items():
        assert answer.exit_code == 2
        assert message in answer.stderr and answer.stderr.count("\n") == 1
    assert not (tmp_path / "x.html").exists()
    with pytest.raises(CannotWrite, match=r"run\.json/x\.html: cannot be written"):
        report(load(folder)).write(folder / "run.json" / "x.html")


def test_the_partition_says_how_far_mixes_of_labels_are_from_an_even_one(tmp_path: Path) -> None:
    """There are four labels: client 0 has one, client 1 two, client 2 all alike, client 3 one half and two quarters."""
    held = {0: {0: 9}, 1: {0: 3, 1: 3}, 2: {0: 2, 1: 2, 2: 2, 3: 2}, 3: {1: 4, 2: 2, 3: 2}}
    cells = [
        {"client": client, "split": "train", "label": label, "samples": samples}
        for client, labels in held.items()
        for label, samples in labels.items()
    ]
    expected = [math.log(4), math.log(2), 0.0, 0.5 * math.log(2)]
    assert divergences(pd.DataFrame(cells)) == pytest.approx(expected, abs=1e-12)
    folder = made(tmp_path / "a", {"partition": cells, "evaluations": [evaluation(1, 0.5)]})
    assert '<figure id="partition-divergence">' in page(folder)
