"""A package of somebody else's brings one part of each kind, and every command works with them.

It is installed into a folder that only child processes know.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from command_line import write
from conftest import ROOT, Raw, digits, override
from waiting import PATIENT_S

from raysim import Result
from raysim.scenario.kinds import kinds

SOURCES = Path(__file__).parent
ENTRY = re.compile(r'^(outside_\w+) = "(raysim_outside\.\w+:\w+)"$', re.MULTILINE)
PATHS: dict[str, str] = dict(ENTRY.findall((SOURCES / "pyproject.toml").read_text()))  # module:Class by name

pytestmark = pytest.mark.package


def server() -> Raw:
    """A scenario with a server, all of whose parts are from outside."""
    return {
        "name": "outside",
        "data": {"name": "outside_points", "clients": 6, "partition": {"name": "outside_turns", "at_a_time": 2}},
        "server_data": {"name": "outside_first_rows", "samples": 4},
        "model": {"name": "outside_net", "width": 5},
        "algorithm": {"name": "outside_mean", "momentum": 0.3},
        "local": {"lr": 0.1, "batch_size": 8},
        "world": {
            "dispatch": {"per_round": 2, "policy": "outside_lowest"},
            "delay": {"name": "outside_slow", "share": 0.4},
            "availability": "outside_shifts",
        },
        "run": {
            "rounds": 6,
            "evaluate_every": 2,
            "metrics": [{"name": "outside_confidence", "power": 2.0}],
            "loss": "outside_surprise",
        },
        "resources": {"chunk": 1},
    }


def peers() -> Raw:
    """One without a server."""
    return {
        "name": "outside",
        "data": {"name": "outside_points", "clients": 6, "partition": "outside_turns"},
        "model": "outside_net",
        "algorithm": "outside_gossip",
        "topology": {"name": "outside_wheel", "weights": "outside_tenth"},
        "world": {
            "synchronous": False,
            "delay": {"name": "constant", "value": 5.0, "unit": "seconds"},
            "edge_delay": {"name": "outside_message", "high": 3.0},
        },
        "run": {"rounds": 3, "observers": [{"name": "outside_tally"}]},
        "resources": {"chunk": 1},
    }


def nested() -> Raw:
    """Parts from outside within parts of raysim."""
    coin = {"name": "outside_coin", "high": 1e9}
    partition = {"name": "iid", "sizes": "outside_first_has_more"}
    return override(
        digits(),
        data={"name": "digits", "clients": 6, "partition": partition, "skew": "outside_negative", "train_samples": 100},
        algorithm={"name": "fedasync", "staleness": "outside_squared"},
        model={"name": "deq_mlp", "width": 4, "hidden": 4, "solver": "outside_halving"},
        world={
            "dispatch": {"concurrency": 2},
            "delay": {"name": "compute", "flops_per_s": coin, "up_bytes_per_s": coin, "down_bytes_per_s": coin},
        },
        run={"rounds": 3},
        resources={"chunk": 1},
    )


def recipe() -> Raw:
    """Parts from outside of a training recipe."""
    return override(
        server(),
        algorithm={"name": "fedavg", "server": "outside_halfway", "aggregate": "outside_shortest"},
        local={
            "optimizer": {"name": "outside_signs", "keep": True},
            "lr": {"name": "outside_harmonic", "start": 0.05},
            "gradients": ["outside_doubled"],
            "augment": [{"name": "outside_jitter", "spread": 0.2}],
            "batch_size": 8,
        },
        clients=[{"name": "loud", "share": 0.5, "behaviour": {"name": "outside_louder", "factor": 3.0}}],
    )


SCENARIOS = {"server": server, "peers": peers, "nested": nested, "recipe": recipe}


def by_path(raw: Any) -> Any:
    """Returns the same with module:Class instead of names."""
    if isinstance(raw, dict):
        return {key: by_path(value) for key, value in raw.items()}
    if isinstance(raw, list):
        return [by_path(value) for value in raw]
    return PATHS.get(raw, raw) if isinstance(raw, str) else raw


class Terminal(NamedTuple):
    """A command line in an empty folder, for which the package is installed."""

    folder: Path
    environment: dict[str, str]

    def python(self, *words: object) -> str:
        """Runs Python, which must succeed, and returns what it prints."""
        line = [sys.executable, *map(str, words)]
        ended = subprocess.run(
            line, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=PATIENT_S, check=False
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    def raysim(self, *words: object) -> str:
        """Runs a command of raysim, which must succeed, and returns what it prints."""
        return self.python("-m", "raysim", *words)

    def run(self, raw: Raw, *options: str) -> Result:
        """Runs a scenario. The result is read where the package is not installed."""
        before = set(self.folder.glob("runs/*"))
        self.raysim("run", write(self.folder, raw), *options)
        (made,) = set(self.folder.glob("runs/*")) - before
        return Result(made)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the package is installed, from a copy, because that leaves folders beside the sources."""
    folder = tmp_path_factory.mktemp("outside")
    shutil.copytree(SOURCES, folder / "sources", ignore=shutil.ignore_patterns("test_*", "__pycache__"))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    target = folder / "site-packages"
    ended = subprocess.run([*pip, "--target", target, folder / "sources"], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return target


@pytest.fixture
def terminal(installed: Path, tmp_path: Path) -> Terminal:
    paths = os.pathsep.join((str(installed), str(ROOT)))
    return Terminal(tmp_path, {**os.environ, "PYTHONPATH": paths, "COLUMNS": "200"})


def test_each_is_of_a_kind_and_used() -> None:
    groups = set(re.findall(r'entry-points\."(.+?)"', (SOURCES / "pyproject.toml").read_text()))
    assert groups <= {kind.choice.group for kind in kinds()}
    used = str([make() for make in SCENARIOS.values()])
    assert [name for name in PATHS if f"'{name}'" not in used] == []


def test_they_are_listed_and_in_the_json_schema(terminal: Terminal) -> None:
    listed = terminal.raysim("list")
    assert [name for name in PATHS if name not in listed] == []
    assert "Factor of the last step." in terminal.raysim("list", "outside_mean")
    schema = terminal.raysim("schema")
    for key in (*PATHS, "at_a_time", "momentum", "power", "Share of the clients that are slow.", "Factor of the last"):
        assert f'"{key}' in schema


@pytest.mark.parametrize("name", SCENARIOS)
def test_names_and_paths_inline_and_ray_give_the_same_bits(name: str, terminal: Terminal) -> None:
    raw = SCENARIOS[name]()
    assert "right (" in terminal.raysim("check", write(terminal.folder, raw), "--data")
    named = terminal.run(raw, "--inline")
    assert named.info["status"] == "finished"
    by_paths = terminal.run(by_path(raw), "--inline")
    assert by_paths.info["digest"]["model"] == named.info["digest"]["model"]  # tables have a metric by its class's name
    assert by_paths.pandas("evaluations").value.tolist() == named.pandas("evaluations").value.tolist()
    workers = {"client_actors": 2, "cpus_per_client": 0.5, "chunk": 1}
    assert terminal.run({**raw, "resources": workers}).digest == named.digest


def test_a_sweep_is_compared_reported_and_shown(terminal: Terminal) -> None:
    sweep = {"grid": {"algorithm": ["outside_mean", PATHS["outside_mean"], "fedavg"], "seed": [0, 1]}}
    file = write(terminal.folder, {**server(), "sweep": sweep})
    assert "6 runs: 6 finished" in terminal.raysim("sweep", file, "--inline")
    assert "6 runs: 6 done before" in terminal.raysim("sweep", file, "--inline")
    compared = terminal.raysim("compare", "runs", "--metric", "accuracy", "--metric", "outside_confidence")
    assert all(word in compared for word in (*sweep["grid"]["algorithm"], "outside_confidence"))
    terminal.raysim("report", "runs", "-o", "report.html")
    page = (terminal.folder / "report.html").read_text()
    assert all(word in page for word in ("outside_mean", "outside_confidence", "moved"))
    (folder, *_) = sorted(path.parent for path in terminal.folder.glob("runs/**/run.json"))
    assert "finished" in terminal.raysim("show", folder)


STOP = """
import sys, raysim

def stop(progress):
    if progress.round >= 2:
        raise raysim.StopRun("enough")

print(raysim.run(raysim.load_scenario(sys.argv[1]), inline=True, observers=[stop]).info["status"])
"""


@pytest.mark.parametrize("spelled", [dict, by_path], ids=["named", "by_path"])
def test_a_stopped_run_goes_on(spelled: Any, terminal: Terminal) -> None:
    raw = override(spelled(server()), run__checkpoint={"every_rounds": 2})
    whole = terminal.run(raw, "--inline")
    before = set(terminal.folder.glob("runs/*"))
    assert terminal.python("-c", STOP, terminal.folder / "scenario.yaml") == "stopped\n"
    (stopped,) = set(terminal.folder.glob("runs/*")) - before
    assert "goes on from round" in terminal.raysim("resume", stopped, "--inline")
    assert Result(stopped).digest == whole.digest


TEST = """
import sys
from typer.testing import CliRunner
from raysim.cli.app import app

for words in sys.argv[1:]:
    answer = CliRunner().invoke(app, ["test", "--no-ray", *words.split()])
    print(words, answer.exit_code, answer.output.splitlines()[-1])
"""


def test_each_passes_raysim_test(terminal: Terminal) -> None:
    """In one process, which is faster than one for each."""
    settings = {"outside_coin": " --set high=2.0"}
    what = [name + settings.get(name, "") for name in [*PATHS, *PATHS.values()]]
    lines = terminal.python("-c", TEST, *what).splitlines()
    assert len(lines) == len(what)
    assert [line for line in lines if not re.search(r" 0 \d+ ok$", line)] == []
