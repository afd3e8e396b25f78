"""Kills parts of runs at random moments, resumes the runs, and compares their digests with undisturbed ones.

python benchmarks/chaos.py [--kills 100] [--seed 0] [--inline-only] [--out FILE.md]

Each scenario below runs undisturbed once. Then it runs again and again while one of its processes is killed with
SIGKILL at a random moment: a client actor, an aggregator, the scheduler, the driver, the raylet, the GCS, or all of
them at once. A run that ends early is resumed, in turn in this process, on one worker and on three. A few kills later
it is left alone, and must end with the digest of the undisturbed run. It prints, for each kind of process, how often it
was killed, how often the run went on by itself, and how many seconds each kill cost. Exit code 1 if a digest differs.

All choices follow from the seed; the moments also depend on how fast the machine is. It needs Linux, whose /proc says
which process is which.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
OFTEN = ["run.checkpoint.every_rounds=3"]
SCENARIOS: dict[str, tuple[str, list[str]]] = {  # a file, and keys to set
    "asynchronous (FedBuff)": ("quickstart.yaml", ["run.rounds=120"]),
    "cached clients (CA2FL)": ("quickstart.yaml", ["algorithm=ca2fl", "run.rounds=60"]),
    "search (Feddle)": (
        "quickstart.yaml",
        ["algorithm=feddle", "server_data={name: in_domain, samples: 100}", "run.rounds=30"],
    ),
    "server ADMM, delays that follow the work (FedADMM-InSa)": (
        "compute.yaml",
        ["algorithm=fedadmm_insa", "world.dispatch={per_round: 10}", "run.rounds=40"],
    ),
    "personalised (Ditto)": (
        "quickstart.yaml",
        ["algorithm=ditto", "data.local_test=0.2", "run.evaluate_clients=20", "run.rounds=40"],
    ),
    "peers without waiting (DecFedAvg)": ("peers.yaml", ["run.rounds=60"]),
    "peers in rounds (FedF-ADMM)": (
        "peers.yaml",
        ["algorithm=fedf_admm", "public={samples: 100}", "world={}", "run.rounds=25"],
    ),
}
INLINE = ("everything, in process",)
ON_RAY = ("client", "aggregator", "scheduler", "driver", "raylet", "GCS", "everything")
WORKERS = (["--inline"], ["--set", "resources.client_actors=1"], ["--set", "resources.client_actors=3"])
OF_SERVER = ("ray::step", "ray::first", "ray::finish")
OF_CLIENT = ("ray::train", "ray::mix", "ray::evaluate", "ray::compare", "ray::consensus", "ray::evaluate_clients")
LONGEST_S = 300.0  # a run that takes longer counts as hung


@dataclass
class Tally:
    """What became of the kills of one kind of process."""

    kills: int = 0
    survived: int = 0  # the run went on by itself
    resumed: int = 0
    costs: list[float] = field(default_factory=list)  # seconds that a run took longer, for each of its kills


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--inline-only", action="store_true", help="without Ray")
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    given = parser.parse_args()
    draw = random.Random(given.seed)
    tallies: dict[str, Tally] = defaultdict(Tally)
    wrong = []
    with tempfile.TemporaryDirectory(prefix="chaos-") as name:
        whole = {label: undisturbed(label, Path(name) / "whole") for label in SCENARIOS}
        for number, label in enumerate(itertools.cycle(SCENARIOS)):
            if sum(tally.kills for tally in tallies.values()) >= given.kills:
                break
            inline = given.inline_only or number % 4 == 3
            out = Path(name) / f"run-{number}"
            killed, digest = disturbed(label, out, draw, tallies, whole[label], inline=inline)
            right = digest == whole[label].digest
            print(
                f"{label}: killed {', '.join(killed) or 'nothing'}: {'same digest' if right else 'WRONG'}", flush=True
            )
            wrong += [] if right else [label]
    text = table(tallies)
    print(text)
    if given.out:
        given.out.write_text(text + "\n")
    return 1 if wrong else 0


@dataclass(frozen=True)
class Whole:
    """An undisturbed run."""

    digest: str
    seconds: float


def undisturbed(label: str, out: Path) -> Whole:
    started = time.monotonic()
    process = start(label, out, inline=True)
    if process.wait(LONGEST_S):
        raise SystemExit(f"{label}: the undisturbed run failed")
    (folder,) = out.iterdir()
    found = Whole(json.loads((folder / "run.json").read_text())["digest"]["run"], time.monotonic() - started)
    print(f"{label}: undisturbed in {found.seconds:.1f} s", flush=True)
    subprocess.run(["rm", "-r", str(folder)], check=True)
    return found


def disturbed(
    label: str, out: Path, draw: random.Random, tallies: dict[str, Tally], whole: Whole, *, inline: bool
) -> tuple[list[str], str | None]:
    """Runs a scenario with kills on the way. Returns what was killed, and the digest at the end, if there is one."""
    killed: list[str] = []
    started = time.monotonic()
    process, on_ray = start(label, out, inline=inline), not inline
    for _ in range(draw.randint(2, 5)):
        kind = draw.choice(ON_RAY if on_ray else INLINE)
        if not strike(process, kind, draw, out, whole.seconds):
            break  # the run was over before
        killed.append(kind)
        tallies[kind].kills += 1
        ended = wait(process, until=20.0 if kind in ("client", "aggregator") else LONGEST_S)
        if not ended or process.returncode == 0:
            tallies[kind].survived += 1
            if ended:
                break
            continue
        tallies[kind].resumed += 1
        choice = draw.choice(WORKERS[:1] if inline else WORKERS)
        process, on_ray = resume(next(out.iterdir()), choice), choice != ["--inline"]
    wait(process, until=LONGEST_S)
    info = json.loads((next(out.iterdir()) / "run.json").read_text())
    cost = (time.monotonic() - started - whole.seconds) / max(len(killed), 1)
    for kind in killed:
        tallies[kind].costs.append(cost)
    return killed, info.get("digest", {}).get("run")


def start(label: str, out: Path, *, inline: bool) -> subprocess.Popen[bytes]:
    file, keys = SCENARIOS[label]
    sets = [word for key in (*keys, *OFTEN) for word in ("--set", key)]
    return command("run", str(ROOT / "scenarios" / file), "--out", str(out), *sets, *(["--inline"] if inline else []))


def resume(folder: Path, how: list[str]) -> subprocess.Popen[bytes]:
    return command("resume", str(folder), *how)


def command(*words: str) -> subprocess.Popen[bytes]:
    """Starts raysim in a process group of its own."""
    full = [sys.executable, "-m", "raysim", *words]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(full, cwd=ROOT, stdout=quiet, stderr=quiet, start_new_session=True)


def strike(process: subprocess.Popen[bytes], kind: str, draw: random.Random, out: Path, seconds: float) -> bool:
    """Kills a process of this kind at a random moment. Returns whether there was one before the run ended."""
    deadline = time.monotonic() + LONGEST_S
    while not list(out.glob("*/run.json")) or not find(process.pid, kind):
        if process.poll() is not None or time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    time.sleep(draw.uniform(0.0, seconds / 2))
    victims = find(process.pid, kind)
    if process.poll() is not None or not victims:
        return False
    for pid in victims if kind.startswith("everything") else [draw.choice(victims)]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return True


def find(driver: int, kind: str) -> list[int]:
    """Returns the processes of a run that are of this kind now."""
    processes = list(family(driver))
    if kind.startswith("everything"):
        return [driver, *(pid for pid, _ in processes)]
    wanted = {
        "driver": lambda text: False,
        "scheduler": lambda text: text.startswith("ray::Scheduler"),
        "client": lambda text: text.startswith(OF_CLIENT),
        "aggregator": lambda text: text.startswith(OF_SERVER),
        "raylet": lambda text: "/raylet/raylet " in text,
        "GCS": lambda text: "/gcs/gcs_server " in text,
    }[kind]
    if kind == "aggregator" and not any(text.startswith("ray::train") for _, text in processes):
        wanted = lambda text: text.startswith((*OF_SERVER, *OF_CLIENT))  # noqa: E731 - a run of peers has none
    return [driver] if kind == "driver" else [pid for pid, text in processes if wanted(text)]


def family(driver: int) -> Iterator[tuple[int, str]]:
    """Yields all processes that a process has started, with their command lines."""
    parents: dict[int, list[int]] = defaultdict(list)
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.read_text().rpartition(")")[2].split()[1])].append(int(path.parent.name))
        except OSError:  # it has ended
            continue
    todo = list(parents[driver])
    while todo:
        pid = todo.pop()
        todo += parents[pid]
        try:
            yield pid, Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
        except OSError:
            continue


def wait(process: subprocess.Popen[bytes], until: float) -> bool:
    """Waits until a process ends, but not longer than `until` seconds. Returns whether it has ended."""
    try:
        process.wait(until)
    except subprocess.TimeoutExpired:
        return False
    return True


def table(tallies: dict[str, Tally]) -> str:
    """Returns what became of the kills, as a table in Markdown."""
    lines = [
        "| killed | kills | run went on by itself | resumed | seconds lost a kill, median |",
        "|---|---|---|---|---|",
    ]
    for kind, tally in sorted(tallies.items()):
        cost = f"{statistics.median(tally.costs):.1f}" if tally.costs else ""
        lines.append(f"| {kind} | {tally.kills} | {tally.survived} | {tally.resumed} | {cost} |")
    total = sum(tally.kills for tally in tallies.values())
    return "\n".join([*lines, f"| all | {total} | | | |"])


if __name__ == "__main__":
    sys.exit(main())
