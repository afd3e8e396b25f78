"""Runs compared seed by seed: every number by hand, who is paired with whom, and what cannot be paired."""

import csv
import io
import math
from pathlib import Path

import pytest
from command_line import command
from compared_runs import FEDAVG, FEDBUFF, made, refused
from scipy import stats

from results import load
from results.ranking import difference

A, B = [0.80, 0.86, 0.83, 0.90], [0.78, 0.83, 0.82, 0.84]


def paired(*arguments: object) -> list[dict[str, str]]:
    """The rows of the CSV, as text."""
    answer = command("compare", *arguments, "--paired", "--format", "csv")
    assert answer.exit_code == 0, answer.output
    return list(csv.DictReader(io.StringIO(answer.stdout)))


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for name, part, ends in (("fedbuff", FEDBUFF, A), ("fedavg", FEDAVG, B)):
        for seed, end in enumerate(ends):
            made(tmp_path / f"{name}-{seed}", {"seed": seed, **part}, [0.1, end])
    return tmp_path


def test_a_difference_is_that_of_the_paired_t_test() -> None:
    """Differences 0.02, 0.03, 0.01, 0.06: mean 0.03; squares of deviations 1 + 0 + 4 + 9 = 14, all times 1e-4."""
    found = difference(A, B)
    assert (found.pairs, found.difference) == (4, pytest.approx(0.03))
    assert found.std == pytest.approx(math.sqrt(14e-4 / 3))
    half = 3.182446305 * math.sqrt(14e-4 / 3) / 2  # the table's t of 3 degrees of freedom at 0.975
    assert (found.low, found.high) == pytest.approx((0.03 - half, 0.03 + half))
    test = stats.ttest_rel(A, B)
    interval = test.confidence_interval(0.95)
    assert found.p == pytest.approx(test.pvalue)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


def test_too_few_pairs_or_no_spread_give_no_number_that_is_not_known() -> None:
    one, none = difference([0.9], [0.8]), difference([], [])
    assert (one.pairs, one.difference) == (1, pytest.approx(0.1))
    assert (none.pairs, math.isnan(none.difference)) == (0, True)
    assert all(math.isnan(number) for number in one[2:])
    same = difference([0.5, 0.5], [0.25, 0.25])
    assert (same.low, same.high) == (0.25, 0.25) and math.isnan(same.p)


def test_infinite_losses_give_no_warning() -> None:
    both = difference([math.inf, 1.0], [math.inf, 2.0])
    assert (both.pairs, math.isnan(both.difference), math.isnan(both.low)) == (2, True, True)
    assert difference([math.inf, 1.0], [1.0, 2.0]).difference == math.inf


def test_cases_are_paired_with_the_baseline_by_seed(runs: Path) -> None:
    (row,) = paired(runs)
    assert (row["algorithm.name"], row["baseline"], row["pairs"]) == ("fedbuff", "algorithm.name=fedavg", "4")
    assert float(row["difference"]) == pytest.approx(0.03)
    for words in (("--baseline", "fedbuff"), ("--baseline", "algorithm=fedbuff", "--by", "algorithm")):
        (row,) = paired(runs, *words)
        assert (row["algorithm.name"], row["baseline"]) == ("fedavg", "algorithm.name=fedbuff")
        assert float(row["difference"]) == pytest.approx(-0.03)
    frame = load(runs).compare(paired=True, baseline="fedavg", metric=["accuracy", "up_bytes"])
    assert list(frame["metric"]) == ["accuracy", "up_bytes"]
    assert frame["difference"].tolist() == pytest.approx([0.03, 0.0])


def test_each_case_has_the_baseline_with_the_same_other_keys(tmp_path: Path) -> None:
    """And keys of the algorithm itself are not other keys: FedAvg has no buffer."""
    for sigma, gain in ((5, 0.1), (20, 0.3)):
        world = {"world": {"delay": {"name": "half_normal", "sigma": sigma}}}
        for seed in range(2):
            made(tmp_path / f"a{sigma}{seed}", {"seed": seed, **FEDAVG, **world}, [0.5 + seed / 10])
            for buffer in (5, 10):
                part = {"algorithm": {"name": "fedbuff", "buffer": buffer}}
                end = 0.5 + seed / 10 + gain + buffer / 1000
                made(tmp_path / f"b{sigma}{seed}{buffer}", {"seed": seed, **part, **world}, [end])
    rows = paired(tmp_path, "--by", "algorithm", "--by", "algorithm.buffer", "--by", "world.delay.sigma")
    found = {(row["algorithm.buffer"], row["world.delay.sigma"]): float(row["difference"]) for row in rows}
    wanted = {("5", "5"): 0.105, ("10", "5"): 0.11, ("5", "20"): 0.305, ("10", "20"): 0.31}
    assert found == pytest.approx(wanted)
    assert "must be one case, got" in refused(tmp_path, "--paired", "--baseline", "fedbuff")
    of_five = paired(tmp_path, "--baseline", "fedbuff", "--baseline", "algorithm.buffer=5")
    assert [row["algorithm.buffer"] for row in of_five] == ["", "", "10.0", "10.0"]
    assert all("algorithm.buffer=5" in row["baseline"] for row in of_five)


def test_cases_without_a_baseline_are_named_where_no_case_is_left(tmp_path: Path) -> None:
    for name, algorithm, lr in (("a", FEDAVG, 0.1), ("b", FEDAVG, 0.2), ("c", FEDBUFF, 0.3)):
        made(tmp_path / name, {**algorithm, "local": {"lr": lr}}, [0.5])
    answer = refused(tmp_path, "--paired", "--baseline", "fedavg")
    assert "algorithm.name=fedbuff, local.lr=0.3: left out, because no baseline has the same other keys" in answer
    assert "must hold a case other than the baseline algorithm.name=fedavg, got none" in answer


def test_runs_without_a_partner_are_named(runs: Path) -> None:
    made(runs / "fedavg-9", {"seed": 9, **FEDAVG}, [0.5])
    made(runs / "fedbuff-8", {"seed": 8, **FEDBUFF}, [0.5])
    answer = command("compare", runs, "--paired")
    assert answer.stderr.splitlines() == [
        f"{runs / 'fedbuff-8'}: left out of a pair, because the baseline has no run with seed 8",
        f"{runs / 'fedavg-9'}: left out of a pair, because a case has no run with seed 9",
    ]
    assert answer.stdout.split()[:5] == ["algorithm", "metric", "pairs", "difference", "95%"]


def test_all_keys_to_add_are_told_at_once(tmp_path: Path) -> None:
    """As of methods that were tuned one by one."""
    made(tmp_path / "a", {**FEDAVG, "local.lr": 0.1, "local.epochs": 1}, [0.5])
    made(tmp_path / "b", {**FEDBUFF, "local.lr": 0.2, "local.epochs": 2}, [0.5])
    answer = command("compare", tmp_path, "--paired", "--by", "algorithm")
    assert "several values of local.lr, local.epochs; add --by local.lr --by local.epochs" in answer.stderr


def test_names_tell_cases_apart_whatever_they_set(tmp_path: Path) -> None:
    for seed in (0, 1):
        for name, keys, value in (("a", {**FEDAVG, "lr": 0.1}, 0.5), ("b", {**FEDBUFF, "lr": 0.2}, 0.75)):
            made(tmp_path / f"{name}-{seed}", {"seed": seed, "name": name, **keys}, [value])
    (row,) = paired(tmp_path, "--by", "name", "--baseline", "a")
    assert (row["name"], row["baseline"], row["pairs"]) == ("b", "name=a", "2")
    assert float(row["difference"]) == 0.25
    made(tmp_path / "a-other", {"seed": 2, "name": "a", **FEDAVG, "lr": 0.3}, [0.5])
    answer = command("compare", tmp_path, "--paired", "--by", "name", "--baseline", "a")
    assert "those with name=a must differ in seed only, got several values of lr" in answer.stderr


def test_runs_of_a_sweep_s_cases_are_paired_by_case(tmp_path: Path) -> None:
    """Whatever else a case sets, such as how it dispatches; what differs within a case still has to be named."""
    for seed, sigma in ((0, 5), (1, 5), (0, 20), (1, 20)):
        for name, keys, value in (("s-a", {**FEDAVG, "lr": 0.1}, 0.5), ("s-b", {**FEDBUFF, "lr": 0.2}, 0.75)):
            of_both = {"seed": seed, "name": name, **keys, "sigma": sigma}
            made(tmp_path / f"{sigma}" / f"{name}-{sigma}-{seed}", of_both, [value], sweep={"name": "s"})
    (row,) = paired(tmp_path / "5", "--by", "algorithm")
    assert (row["algorithm.name"], row["pairs"], row["difference"]) == ("fedbuff", "2", "0.25")
    assert "several values of sigma; add --by sigma" in refused(tmp_path, "--paired", "--by", "algorithm")
    assert len(paired(tmp_path, "--by", "algorithm", "--by", "sigma")) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--by", "algorithm"], "they must differ in their seed and algorithm.name only, got several values of lr;"),
        (["--baseline", "fedprox"], "baseline: must be a value of a key that differs, lr of 0.1, 0.2; algorithm.name"),
        (["--subject", "client", "--subject", "peer"], "--subject: must be given once, got client, peer; each"),
        (["--columns", "lr"], "columns: must not be given with paired, got ('lr',); leave them out"),
    ],
)
def test_what_cannot_be_paired_is_refused(tmp_path: Path, words: list[str], message: str) -> None:
    for seed in range(2):
        made(tmp_path / f"a{seed}", {"seed": seed, "lr": 0.1, **FEDAVG}, [0.5])
        made(tmp_path / f"b{seed}", {"seed": seed, "lr": 0.2, **FEDBUFF}, [0.5])
    assert message in refused(tmp_path, "--paired", *words)


def test_pairs_need_two_cases(tmp_path: Path) -> None:
    made(tmp_path / "a", FEDAVG, [0.5])
    assert "by: must name what differs between the runs, got none" in refused(tmp_path, "--paired")
    assert "baseline: must be given with paired=True" in refused(tmp_path, "--baseline", "fedavg")
    made(tmp_path / "b", {**FEDBUFF, "seed": 1}, [0.5])
    answer = command("compare", tmp_path, "--paired", "--format", "markdown")
    assert "accuracy: needs two pairs for intervals, got 0" in answer.stderr


def test_names_of_cases_are_followed_by_what_they_are(tmp_path: Path) -> None:
    cases = (("sync", FEDAVG, 0.2), ("async", FEDBUFF, 0.2), ("careful", FEDBUFF, 0.1))
    for name, part, lr in cases:
        for seed in range(2):
            made(tmp_path / f"{name}-{seed}", {"seed": seed, "name": name, "local": {"lr": lr}, **part}, [0.5])
    answer = command("compare", tmp_path, "--paired", "--by", "name", "--baseline", "sync", "--format", "markdown")
    lines = answer.stdout.splitlines()
    assert [line.split(" | ")[:2] for line in (lines[2], lines[3])] == [
        ["| async", "fedbuff"],
        ["| careful", "fedbuff, lr=0.1"],
    ]
    assert "what: unless a row says otherwise, lr=0.2" in answer.stdout
    assert "minus name=sync (fedavg)" in answer.stdout


def test_a_baseline_is_named_as_tables_name_it(tmp_path: Path) -> None:
    """A list of parts by their names, a schedule as it is shown, and a key by its head."""
    falling = {"name": "exponential", "start": 0.1, "factor": 0.9, "over": "rounds", "warmup": 0.0, "warmup_from": 0.1}
    cases = {"plain": ([], 0.1), "few": ([{"name": "top_k", "share": 0.1}, {"name": "half"}], falling)}
    for name, (uplink, lr) in cases.items():
        for seed in range(2):
            keys = {"seed": seed, "name": name, **FEDAVG, "uplink": uplink, "local": {"lr": lr}}
            made(tmp_path / f"{name}-{seed}", keys, [0.5])
    shown = {"few": ["top_k+half", "exponential(start=0.1, factor=0.9)"], "plain": ["none", "0.1"]}
    by = [word for key in ("name", "uplink", "local.lr") for word in ("--by", key)]
    for other, case in (("plain", "few"), ("few", "plain")):
        uplink, lr = shown[other]
        for baseline in (uplink, f"uplink={uplink}", lr, f"lr={lr}", f"local.lr={lr}", other):
            answer = command("compare", tmp_path, "--paired", *by, "--baseline", baseline, "--format", "markdown")
            assert answer.stdout.splitlines()[2].split(" | ")[:3] == [f"| {case}", *shown[case]], answer.output
            (row,) = paired(tmp_path, *by, "--baseline", baseline)
            assert row["baseline"] == f"name={other}, uplink={uplink}, local.lr={lr}"
