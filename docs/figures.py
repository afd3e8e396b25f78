"""Draws the figures of these pages, from runs of the shipped scenarios: `python docs/figures.py`.

It takes about a minute. The figures are files of their own, so that building the site runs nothing.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
# For each name of our own, the figure of the report that it is.
SLOW_CLIENTS = {
    "accuracy-by-round": "curves-accuracy-test-round",
    "accuracy-by-bytes": "curves-accuracy-test-bytes",
    "staleness": "staleness",
    "status": "dispatches",
    "timeline-fedavg": "timeline-0",
    "timeline-fedbuff": "timeline-2",
    "partition": "partition-0",
}
PEERS = {
    "peers-topology": "topology-0",
    "peers-accuracy": "members-peer-accuracy-test",
    "peers-consensus": "curves-consensus-test-round",
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder)
        slow = ["--set", "algorithm=fedavg,fedbuff", "--set", "world.delay.sigma=5,20", "--set", "run.rounds=200"]
        raysim("sweep", ROOT / "scenarios" / "quickstart.yaml", *slow, "--seeds", "0,1,2", "--inline", "--out", runs)
        draw(runs / "quickstart", SLOW_CLIENTS)
        raysim("run", ROOT / "scenarios" / "peers.yaml", "--inline", "--out", runs / "peers")
        draw(runs / "peers", PEERS)


def draw(runs: Path, figures: dict[str, str]) -> None:
    """Makes a report of the runs, and keeps some of its figures."""
    raysim("report", runs, "--out", runs / "report.html", "--svg", runs / "figures")
    for name, figure in figures.items():
        shutil.copyfile(runs / "figures" / f"{figure}.svg", IMAGES / f"{name}.svg")


def raysim(*words: str | Path) -> None:
    subprocess.run([sys.executable, "-m", "raysim", *map(str, words)], check=True)


if __name__ == "__main__":
    main()
