"""Kills parts of runs at random moments, resumes the runs, and compares their digests with undisturbed ones.

python benchmarks/chaos.py [--kills 100] [--seed 0] [--inline-only] [--kinds client,peer] [--nodes 3] [--out FILE.md]

Each scenario below runs undisturbed once. Then it runs again and again while one of its processes is killed with
SIGKILL at a random moment: a client actor, an aggregator, a peers' actor, the loader of the data, the scheduler, the
driver, the raylet, the GCS, or all of them at once; workers are drawn most often. Every second run is on Ray, every
fourth on `--local 2`, whose worker processes are killed, and every fourth in one process. A sweep is started again, and
so is a script with several runs in one `raysim.session()`; a run that ends early is resumed inline, on `--local 2`, or
on one or three actors. With `--nodes 3`, runs share a Ray of a head and three more nodes on this machine, with models
that are so large that nodes hold them. A node may then be killed, too; another takes its place. `--kinds` says what may
be killed on Ray, and then all runs are there. A few kills later a run is left alone, and must end with the digest of
the undisturbed one. It prints, for each kind of process, how often it was killed, how often the run survived, how many
seconds each kill cost, and how many it took from a kill of a node until the next checkpoint; and for each family, how
many of its runs ended with the right digest. If it is interrupted, it prints what it has done so far. Exit code 1 if a
digest was wrong.

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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread, Timer

ROOT = Path(__file__).parents[1]
OFTEN = ["run.checkpoint.every_rounds=3"]
ON_ALL_NODES = ["resources.client_actors=3"]
LARGE = "model.hidden=[400]"  # 120 KB of parameters: Ray keeps values of over 100 KB on the nodes that made them
SWEEP, SESSION = "sweep (FedAvg and FedBuff, two seeds)", "session (two runs)"
SCENARIOS: dict[str, tuple[str, list[str]]] = {  # a file, and keys to set
    "in rounds (FedAvg)": ("quickstart.yaml", ["algorithm=fedavg", "run.rounds=150"]),
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
        ["algorithm=ditto", "data.local_test=0.2", "run.evaluate_clients=20", "run.rounds=60"],
    ),
    "personalised, implicit layers (FeDEQ)": (
        "quickstart.yaml",
        [
            "model={name: deq_mlp, width: 64, hidden: 64}",
            "algorithm={name: fedeq, rho: 0.01, head_epochs: 1}",
            "local.epochs=1",
            "data.local_test=0.2",
            "run.evaluate_clients=20",
            "run.rounds=60",
        ],
    ),
    "peers without waiting (DecFedAvg)": ("peers.yaml", ["run.rounds=60"]),
    "peers in rounds (FedF-ADMM)": (
        "peers.yaml",
        ["algorithm=fedf_admm", "public={samples: 100}", "world={}", "run.rounds=25"],
    ),
    "text (GPT)": (
        "quickstart.yaml",
        [
            f"data={{name: text, path: {ROOT / 'CHANGELOG.md'}, length: 32, pack: true, clients: 20, partition: iid}}",
            "model={name: transformer, width: 32, heads: 2, layers: 2, personal: []}",
            "run.rounds=30",
        ],
    ),
    "rules of servers (FedAdam)": ("quickstart.yaml", ["algorithm=fedadam", "run.rounds=120"]),
    "models of several widths (FedRolex)": (
        "quickstart.yaml",
        [
            "algorithm=fedrolex",
            "capacity={levels: [1.0, 0.5, 0.25], by: drawn}",
            "world.dispatch={per_round: 10}",
            "run.rounds=120",
        ],
    ),
    "codecs with memories, up and down": (
        "quickstart.yaml",
        [
            "uplink=[{name: top_k, share: 0.1, memory: ef14}]",
            "downlink=[{name: top_k, share: 0.1, memory: shadow}]",
            "run.rounds=120",
        ],
    ),
    "privacy (a tree's noise)": (
        "quickstart.yaml",
        [
            "algorithm={name: fedbuff, staleness: none}",
            "uplink=[{name: clip_norm, max: 1.0}]",
            "release={name: tree, multiplier: 0.5}",
            "run.rounds=120",
        ],
    ),
    SWEEP: ("quickstart.yaml", ["algorithm=fedavg,fedbuff", "seed=0,1", "run.rounds=60"]),
    SESSION: ("quickstart.yaml", ["run.rounds=60"]),
}
INLINE = "everything, in process"
CHILD = "worker process of --local or a sweep"
WORKERS = ("client", "aggregator", "peer", CHILD)
OF_RUN = (*WORKERS, "loader", "scheduler", "driver")  # what belongs to a run alone
ON_RAY = (*OF_RUN, "raylet", "GCS", "everything")
ON_NODES = (*OF_RUN, "node")
OFTEN_DRAWN = 4  # how much more often each kind of worker is drawn than any other
PLACES = ("ray", "ray", "local", "inline")  # where runs begin, in turn
WHERE = {"ray": [], "local": ["--local", "2"], "inline": ["--inline"]}
RESUMED = (  # where a run continues, with keys to set
    ("inline", []),
    ("local", []),
    ("ray", ["resources.client_actors=1"]),
    ("ray", ["resources.client_actors=3"]),
)
RUN_TWICE = """
import sys
import raysim

file, out, *keys = sys.argv[1:]
with raysim.session():
    for seed in (0, 1):
        raysim.run(raysim.load_scenario(file, [*keys, f"seed={seed}"]), out=out, resume=True)
"""
TITLES = {  # of processes: Ray shows what they do, or what they are
    "client": ("ray::Client", "ray::train", "ray::evaluate", "ray::metrics"),
    "aggregator": ("ray::Aggregator", "ray::step", "ray::first"),
    "peer": ("ray::Client", "ray::mix", "ray::evaluate", "ray::compare", "ray::consensus", "ray::metrics"),
    "loader": ("ray::Loader", "ray::load"),
    "scheduler": ("ray::Scheduler",),
}
LONGEST_S = 300.0  # a run that takes longer counts as hung


@dataclass
class Tally:
    """What became of the kills of one kind of process, or of the runs of one family."""

    kills: int = 0
    survived: int = 0  # the run went on by itself
    resumed: int = 0
    costs: list[float] = field(default_factory=list)  # seconds that a run took longer, for each of its kills
    recoveries: list[float] = field(default_factory=list)  # seconds from a kill until the next checkpoint
    right: int = 0  # runs that ended with the right digest
    wrong: int = 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--inline-only", action="store_true", help="without Ray")
    parser.add_argument("--kinds", help="what may be killed on Ray, separated by commas; by default everything")
    parser.add_argument("--nodes", type=int, default=0, help="nodes beside the head, on which runs share a Ray")
    parser.add_argument("--out", type=Path, help="also write the tables to this file")
    given = parser.parse_args()
    possible = ON_NODES if given.nodes else ON_RAY
    kinds = given.kinds.split(",") if given.kinds else possible
    if unknown := set(kinds) - set(possible):
        parser.error(f"--kinds: must be of {', '.join(possible)}, got {', '.join(sorted(unknown))}")
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, signal.default_int_handler)
    draw = random.Random(given.seed)
    tallies: dict[str, Tally] = defaultdict(Tally)
    families: dict[str, Tally] = defaultdict(Tally)
    with (
        tempfile.TemporaryDirectory(prefix="chaos-") as name,
        several_nodes(given.nodes) as nodes,
        suppress(KeyboardInterrupt),
    ):
        whole = {label: undisturbed(label, Path(name) / "whole", nodes) for label in SCENARIOS}
        for number, label in enumerate(itertools.cycle(SCENARIOS)):
            if sum(tally.kills for tally in tallies.values()) >= given.kills:
                break
            run = Run(label, Path(name) / f"run-{number}", nodes, whole[label])
            # The number of scenarios may be a multiple of that of places: each turn begins one place later.
            turn = PLACES[(number + number // len(SCENARIOS)) % len(PLACES)]
            place = "inline" if given.inline_only else "ray" if given.kinds or nodes or label == SESSION else turn
            if not run.choices(place, kinds):
                continue
            killed = disturbed(run, draw, tallies, place, kinds)
            digest, what = run.digest, ", ".join(killed) or "nothing"
            right = digest == whole[label].digest
            ended = "same digest" if right else "WRONG DIGEST" if digest else "NOT FINISHED"
            print(f"{label}, {place}: killed {what}: {ended}", flush=True)
            families[label].kills += len(killed)
            families[label].right += right
            families[label].wrong += not right
    text = f"{table(tallies)}\n\n{table_of_families(families)}"
    print(text)
    if given.out:
        given.out.write_text(text + "\n")
    return 1 if any(tally.wrong for tally in families.values()) else 0


class Nodes:
    """A Ray of several nodes on this machine."""

    def __init__(self, number: int) -> None:
        from ray.cluster_utils import Cluster

        # A node that is gone is then found so within seconds.
        checks = ("initial_delay_ms", 500), ("period_ms", 500), ("timeout_ms", 1000), ("failure_threshold", 3)
        settings = {f"health_check_{key}": value for key, value in checks}
        head = {"num_cpus": 1, "include_dashboard": False, "_system_config": settings}
        # Without the handlers of signals, nodes can be started in threads.
        self.cluster = Cluster(initialize_head=True, head_node_args=head, shutdown_at_exit=False)
        self._nodes = [self.cluster.add_node(num_cpus=2) for _ in range(number)]
        self._coming = Thread()

    @property
    def address(self) -> str:
        return str(self.cluster.address)

    def kill(self, draw: random.Random) -> None:
        """Kills one of the nodes with all its processes. Another comes, at once or some time later."""
        if self._coming.ident:  # it was started
            self._coming.join()
        node = self._nodes.pop(draw.randrange(len(self._nodes)))
        self.cluster.remove_node(node, allow_graceful=False)
        self._coming = Timer(draw.choice((0.0, 10.0)), self._add)
        self._coming.start()

    def _add(self) -> None:
        self._nodes.append(self.cluster.add_node(num_cpus=2))

    def end(self) -> None:
        if self._coming.ident:
            self._coming.join()
        self.cluster.shutdown()


@contextmanager
def several_nodes(number: int) -> Iterator[Nodes | None]:
    """Starts a Ray of a head and so many nodes, which ends after the block; 0: each run starts a Ray of its own."""
    nodes = Nodes(number) if number else None
    try:
        yield nodes
    finally:
        if nodes:
            nodes.end()


@dataclass(frozen=True)
class Whole:
    """An undisturbed run."""

    digest: str
    seconds: float
    loop_s: float  # of that, for its timeline


@dataclass(frozen=True)
class Run:
    """A run that is to be disturbed."""

    label: str
    out: Path
    nodes: Nodes | None
    whole: Whole | None  # the undisturbed one, if that is known

    @property
    def folder(self) -> Path:
        return next(self.out.iterdir())

    @property
    def is_one(self) -> bool:
        """Whether it is one run, rather than several, which are started again with the same command."""
        return self.label not in (SWEEP, SESSION)

    @property
    def digest(self) -> str | None:
        """The digest at its end; of several runs, those of all. None while there is none."""
        infos = [json.loads(file.read_text()) for file in sorted(self.out.rglob("run.json"))]
        found = sorted(str(info.get("digest", {}).get("run")) for info in infos)
        return ", ".join(found) if found and "None" not in found else None

    @property
    def version(self) -> int:
        """That of its checkpoint; -1 if there is none yet."""
        for file in self.out.glob("*/checkpoint/checkpoint.json"):
            version: int = json.loads(file.read_text())["version"]
            return version
        return -1

    def start(self, place: str) -> subprocess.Popen[bytes]:
        """place: one of WHERE."""
        name, keys = SCENARIOS[self.label]
        file, out = str(ROOT / "scenarios" / name), str(self.out)
        large = [] if any(key.startswith("model") for key in keys) else [LARGE]
        keys = [*keys, *OFTEN, *([*ON_ALL_NODES, *large] if self.nodes else [])]
        if self.label == SESSION:
            return started("-c", RUN_TWICE, file, out, *keys)
        sets = [word for key in keys for word in ("--set", key)]
        if self.label == SWEEP:
            where = self._address if place == "ray" else ["--inline", "--parallel", "2"]
            return started("-m", "raysim", "sweep", file, "--out", out, *sets, *where)
        return started("-m", "raysim", "run", file, "--out", out, *sets, *self._where(place))

    def resume(self, place: str, keys: list[str]) -> subprocess.Popen[bytes]:
        if not self.is_one:
            return self.start(place)
        sets = [word for key in keys for word in ("--set", key)]
        return started("-m", "raysim", "resume", str(self.folder), *sets, *self._where(place))

    def _where(self, place: str) -> list[str]:
        return WHERE[place] or self._address

    @property
    def _address(self) -> list[str]:
        return ["--address", self.nodes.address] if self.nodes else []

    def choices(self, place: str, kinds: Sequence[str]) -> list[str]:
        """Returns what of it may be killed, workers several times, because they are drawn more often.

        kinds: what may be killed on Ray.
        """
        if place == "inline" and self.label != SWEEP:
            return [INLINE]
        if place != "ray":
            return [CHILD] * OFTEN_DRAWN + ["driver", "everything"]
        mine = WORKERS[2:3] if self.label.startswith("peers") else WORKERS[:2]
        others = [kind for kind in kinds if kind not in WORKERS]
        return [kind for kind in mine if kind in kinds] * OFTEN_DRAWN + others


def undisturbed(label: str, out: Path, nodes: Nodes | None) -> Whole:
    began = time.monotonic()
    run = Run(label, out / str(len(label)) / label.split()[0], nodes, None)
    if run.start("ray" if label == SESSION else "inline").wait(LONGEST_S):
        raise SystemExit(f"{label}: the undisturbed run failed")
    loops = [json.loads(file.read_text())["seconds"]["loop"] for file in run.out.rglob("run.json")]
    found = Whole(str(run.digest), time.monotonic() - began, sum(loops))
    print(f"{label}: undisturbed in {found.seconds:.1f} s", flush=True)
    return found


def disturbed(run: Run, draw: random.Random, tallies: dict[str, Tally], place: str, kinds: Sequence[str]) -> list[str]:
    """Runs a scenario with kills on the way. Returns what was killed. kinds: what may be killed on Ray."""
    killed: list[str] = []
    began = time.monotonic()
    process = run.start(place)
    for _ in range(draw.randint(2, 4) if run.nodes else draw.randint(3, 8)):
        kind = draw.choice(run.choices(place, kinds))
        if not strike(process, kind, draw, run):
            break  # the run was over before
        killed.append(kind)
        tallies[kind].kills += 1
        if kind == "node":
            tallies[kind].recoveries += recovery(process, run)
        ended = wait(process, until=1.0 if kind in (*WORKERS, "node") else LONGEST_S)
        if not ended or process.returncode == 0:
            tallies[kind].survived += 1
            if ended:
                break
            continue
        tallies[kind].resumed += 1
        if run.is_one and place != "inline":
            place, keys = draw.choice(RESUMED)
            process = run.resume(place, keys)
        else:
            process = run.resume(place, [])
    if wait(process, until=LONGEST_S) and process.returncode:  # it did not survive the last kill after all
        tallies[killed[-1]].survived -= 1
        tallies[killed[-1]].resumed += 1
        wait(run.resume("ray" if run.label == SESSION else "inline", []), until=LONGEST_S)
    assert run.whole
    cost = (time.monotonic() - began - run.whole.seconds) / max(len(killed), 1)
    for kind in killed:
        tallies[kind].costs.append(cost)
    return killed


def started(*words: str) -> subprocess.Popen[bytes]:
    """Starts Python with these arguments in its own process group."""
    quiet = subprocess.DEVNULL
    return subprocess.Popen([sys.executable, *words], cwd=ROOT, stdout=quiet, stderr=quiet, start_new_session=True)


def strike(process: subprocess.Popen[bytes], kind: str, draw: random.Random, run: Run) -> bool:
    """Kills a process of this kind at a random moment. Returns whether there was one before the run ended."""
    root = os.getpid() if run.nodes else process.pid  # from which its processes descend
    assert run.whole
    for seconds in (0.0, draw.uniform(0.0, run.whole.loop_s / 4)):  # once there is one, a while, and until there is one
        time.sleep(seconds)
        deadline = time.monotonic() + LONGEST_S
        while not list(run.out.rglob("run.json")) or not (victims := find(root, process.pid, kind)):
            if process.poll() is not None or time.monotonic() > deadline:
                return False
            time.sleep(0.002)
    if kind == "node" and run.nodes:
        run.nodes.kill(draw)
        return True
    for pid in victims if kind.startswith("everything") else [draw.choice(victims)]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return process.poll() is None or kind.startswith(("everything", "driver"))


def find(root: int, driver: int, kind: str) -> list[int]:
    """Returns the processes of a run that are of this kind now. root: from which they all descend."""
    if kind in ("driver", "node"):
        return [driver]
    processes = list(family(root))
    if kind.startswith("everything"):
        return [driver, *(pid for pid, _ in processes)]
    paths = {"raylet": "/raylet/raylet ", "GCS": "/gcs/gcs_server "}
    if kind in paths:
        return [pid for pid, text in processes if paths[kind] in text]
    if kind == CHILD:
        return [pid for pid, text in processes if "from actors.child import serve" in text]
    return [pid for pid, text in processes if text.startswith(TITLES[kind])]


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


def recovery(process: subprocess.Popen[bytes], run: Run) -> list[float]:
    """Waits until a run has come further than it was. Returns how many seconds that took; none if it ended before."""
    started, before = time.monotonic(), run.version
    while run.version <= before and time.monotonic() < started + LONGEST_S:
        if wait(process, until=0.05):
            return []
    return [time.monotonic() - started]


def table(tallies: dict[str, Tally]) -> str:
    """Returns what became of the kills, as a table in Markdown."""
    lines = [
        "| killed | kills | run went on by itself | resumed | seconds lost a kill, median | seconds to recover |",
        "|---|---|---|---|---|---|",
    ]
    for kind, tally in sorted(tallies.items()):
        cost = f"{statistics.median(tally.costs):.1f}" if tally.costs else ""
        took = sorted(tally.recoveries)
        spread = f"{took[0]:.1f} to {took[-1]:.1f}, median {statistics.median(took):.1f}" if took else ""
        lines.append(f"| {kind} | {tally.kills} | {tally.survived} | {tally.resumed} | {cost} | {spread} |")
    total = sum(tally.kills for tally in tallies.values())
    return "\n".join([*lines, f"| all | {total} | | | | |"])


def table_of_families(families: dict[str, Tally]) -> str:
    """Returns how the runs of each family ended, as a table in Markdown."""
    lines = ["| family | runs | kills | same digest |", "|---|---|---|---|"]
    for label, tally in families.items():
        lines.append(f"| {label} | {tally.right + tally.wrong} | {tally.kills} | {tally.right} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
