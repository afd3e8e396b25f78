"""The sections of a report on settings and on fairness show numbers that were worked out by hand."""

import json
import math
import re
from typing import Any

import pytest
from reported_runs import evaluation, made
from table_rows import update

from results import load
from results.report import Report, report
from results.report.members import members
from results.report.settings import settings

MEANS = {("fedavg", 0.1): 0.3, ("fedavg", 10.0): 0.7, ("fedbuff", 0.1): 0.5, ("fedbuff", 10.0): 0.8}
CLIENTS = 40  # of which two are the worst 5 %


@pytest.fixture(scope="module")
def made_report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A report of runs of two algorithms, with two alphas and three seeds each.

    The more often a client took part, the better it is with FedAvg, and the worse with FedBuff.
    """
    folder = tmp_path_factory.mktemp("runs")
    for (algorithm, alpha), mean in MEANS.items():
        for seed, off in enumerate((-0.1, -0.05, 0.15)):
            scenario = {"algorithm": {"name": algorithm}, "seed": seed, "run": {"rounds": 2}}
            scenario["data"] = {"partition": {"name": "dirichlet_clients", "alpha": alpha}}
            whole = [evaluation(1, 0.05), evaluation(2, mean + off)]
            places = range(CLIENTS) if algorithm == "fedavg" else range(CLIENTS)[::-1]
            own = [evaluation(2, place / CLIENTS, client, subject="client") for client, place in enumerate(places)]
            used = [update(number, client=client) for number, client in enumerate(range(CLIENTS // 2, CLIENTS))]
            rows: Any = {"evaluations": whole + own, "updates": used}
            made(folder / f"{algorithm}-{alpha}-{seed}", rows, scenario)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("results.report.page.SECTIONS", (settings, members))
        return report(load(folder))


def shown(made_report: Report, name: str) -> Any:
    """What a figure says under the pointer."""
    (found,) = [picture for picture in made_report.pictures if picture.name == name]
    return json.loads(found.values[0])


def test_robustness_has_the_mean_of_each_method_over_alpha(made_report: Report) -> None:
    lines = shown(made_report, "accuracy-by-data-partition-alpha")["series"]
    assert [(label, x, y) for label, _, x, y, _ in lines] == [
        ("fedavg", [0.1, 10], [0.3, 0.7]),
        ("fedbuff", [0.1, 10], [0.5, 0.8]),
    ]


def test_the_grid_has_the_mean_of_each_setting(made_report: Report) -> None:
    cells = shown(made_report, "ablation")["cells"]
    assert cells["columns"] == ["algorithm.name=fedavg", "algorithm.name=fedbuff"]
    assert cells["rows"] == ["data.partition.alpha=0.1", "data.partition.alpha=10"]
    assert cells["numbers"] == [[0.3, 0.5], [0.7, 0.8]]
    (grid,) = [picture.svg for picture in made_report.pictures if picture.name == "ablation"]
    assert re.findall(r">(0\.\d{3})<", grid) == ["0.300", "0.500", "0.700", "0.800"]
    assert grid.count("stroke-width:1.6") == 1  # the best one has a frame


def test_fairness_has_the_worst_and_best_clients_and_who_took_part(made_report: Report) -> None:
    """Clients have the values 0, 1/40, ..., 39/40. Among n ranks, a half against the other half correlates by
    (n / 8) / (sqrt((n^2 - 1) / 12) / 2) = 0.87."""
    text = made_report.html.partition('<section id="members">')[2]
    rows = re.findall(r"<td[^>]*>(?:<[^>]*>)*(fed\w+, alpha=[\d.]+)(.*?)</tr>", text, re.DOTALL)
    found = {label: re.findall(r"<td[^>]*>([\d.,]+)</td>", cells) for label, cells in rows}
    mean, worst, best, spread = 39 / 80, 1 / 80, 77 / 80, math.sqrt((CLIENTS**2 - 1) / 12) / CLIENTS
    expected = [*(f"{number:.4f}" for number in (mean, worst, best, spread)), "120"]
    assert found == {f"{algorithm}, alpha={alpha:g}": expected for algorithm, alpha in MEANS}
    told = "fedavg, alpha=0.1 +0.87, fedavg, alpha=10 +0.87, fedbuff, alpha=0.1 -0.87, fedbuff, alpha=10 -0.87"
    assert f"Rank correlation: {told}." in text
