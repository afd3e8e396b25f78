"""Checks and measures all that needs a GPU, in less than ten minutes, and writes a table as Markdown.

    python benchmarks/gpu.py [--out gpu.md] [--pfl PFL/bin/torchrun]
    python benchmarks/gpu.py --graphs [--out gpu.md]

It compares CPU with GPU, and digests of repeated runs and of 1, 2 and 4 actors a GPU; and measures updates a second and
memory by model, precision and number of actors. Where there is no GPU, or with `--cpu`, small jobs run on the CPU
instead: that shows that the script works, and says nothing about speed. Samples are noise, made here. The exit code is
1 if a check fails. pfl-research is left out unless it is installed, here or there.

With `--graphs`, it compares runs with and without CUDA graphs instead, three times in turn: digests must be the same,
the CNN at least three times as fast, and no job slower. That needs a GPU.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

HERE = Path(__file__).parent
CLOSE = 1e-4  # how far parameters on a CPU and on a GPU may be apart in float32
FASTER = 3  # times as fast as without CUDA graphs must the first of these jobs be, for them to be the default
GRAPHED = ("cnn, 10 a round", "resnet18", "vit with lora", "gpt2 with lora")
CLASSES = 5  # the smallest jobs have no more samples of each
DELAYED = {"delay": {"name": "half_normal", "sigma": 2}}


@dataclass(frozen=True)
class Job:
    """FedAvg, or FedBuff with delays. All clients hold as many images, or texts."""

    model: dict[str, Any]
    image: tuple[int, ...] | None  # None: texts
    clients: int
    samples: int  # of each client
    cohort: int  # clients in a round
    chunk: int  # clients in a job of an actor
    rounds: int
    epochs: int = 1
    batch_size: int = 20
    asynchronous: bool = False

    def scenario(self, case: Case, folder: Path) -> dict[str, Any]:
        """Returns the scenario of a case of this job, whose texts are written to a folder."""
        from raysim.data import Arrays, divided

        share = 0.0 if case.device == "cpu" else int(100 / max(case.actors, 1)) / 100
        texts = {"name": "text", "path": str(folder / "texts.jsonl"), "length": 100, "clients": self.clients}
        texts["partition"] = "iid"
        local = {"lr": 0.05, "epochs": self.epochs, "batch_size": self.batch_size}
        if case.precision != "exact":  # which is float32, with variables that PyTorch obeys
            local["precision"] = case.precision
        if self.image is None:
            self._write_texts(Path(texts["path"]))
        return {
            "name": "gpu",
            "data": divided(Arrays.of(self._noise(), inputs="images_last"), clients=self.clients, partition="iid")
            if self.image
            else texts,
            "model": self.model,
            "algorithm": {"name": "fedbuff", "buffer": self.cohort} if self.asynchronous else "fedavg",
            "local": local,
            "world": {"dispatch": {"per_round": self.cohort}} | (DELAYED if self.asynchronous else {}),
            "run": {"rounds": self.rounds, "evaluate_every": self.rounds},
            "resources": {
                "client_actors": max(case.actors, 1),
                "gpus_per_client": share,
                "chunk": self.chunk,
                "cuda_graphs": case.graphs,
            },
        }

    def _write_texts(self, path: Path) -> None:
        """Writes a text for each sample of each client, and a few for tests."""
        letters = np.random.default_rng(0).integers(97, 123, (self.clients * self.samples * 5 // 4, 100), np.uint8)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps({"text": bytes(row).decode()}) + "\n" for row in letters))

    def _noise(self) -> dict[str, np.ndarray]:
        generator = np.random.default_rng(0)
        sizes = {"train": self.clients * self.samples, "test": 100}
        image = self.image or ()
        x = {f"x_{split}": generator.integers(0, 256, (n, *image), np.uint8) for split, n in sizes.items()}
        return x | {f"y_{split}": np.arange(n) % CLASSES for split, n in sizes.items()}


CNN = {"name": "cnn", "channels": [32, 64], "kernel": 5, "hidden": 512}  # the job `cnn` of jobs.py
SMALL_CNN = {"name": "cnn", "channels": [4, 8], "kernel": 3, "hidden": 16}
RESNET = {"name": "torchvision", "model": "resnet18"}
LORA = {"rank": 4, "targets": ["attn.qkv", "attn.proj"]}
VIT = {"name": "timm", "model": "vit_small_patch16_224", "image_size": 224, "lora": LORA}
GPT = {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12}  # GPT-2 but for its vocabulary
SMALL_GPT = {"model_type": "gpt2", "n_layer": 2, "n_embd": 32, "n_head": 2}
TUNED = {"name": "causal_lm", "dtype": "bfloat16", "lora": {"rank": 8, "targets": ["c_attn"]}}
SMALL_VIT = {"name": "timm", "model": "vit_tiny_patch16_224", "image_size": 32, "lora": LORA}
JOBS = {
    "cnn, 10 a round": Job(CNN, (28, 28), clients=500, samples=120, cohort=10, chunk=10, rounds=30, epochs=2),
    "cnn, 100 a round": Job(CNN, (28, 28), clients=500, samples=120, cohort=100, chunk=25, rounds=8, epochs=2),
    "resnet18": Job(RESNET, (32, 32, 3), clients=100, samples=60, cohort=20, chunk=10, rounds=4),
    "vit with lora": Job(VIT, (32, 32, 3), clients=100, samples=32, cohort=20, chunk=10, rounds=4, batch_size=16),
    "gpt2 with lora": Job(TUNED | {"config": GPT}, None, 40, samples=32, cohort=10, chunk=5, rounds=4, batch_size=8),
    "cnn, fedbuff": Job(CNN, (28, 28), 500, samples=120, cohort=10, chunk=10, rounds=30, epochs=2, asynchronous=True),
    "checked": Job(CNN, (28, 28), clients=20, samples=50, cohort=10, chunk=5, rounds=2),
}
SMALL_JOBS = {
    "cnn, 10 a round": Job(SMALL_CNN, (12, 12), clients=20, samples=12, cohort=10, chunk=10, rounds=4, batch_size=4),
    "cnn, 100 a round": Job(SMALL_CNN, (12, 12), clients=20, samples=12, cohort=12, chunk=3, rounds=3, batch_size=4),
    "resnet18": Job(RESNET, (32, 32, 3), clients=4, samples=2, cohort=2, chunk=2, rounds=2, batch_size=2),
    "vit with lora": Job(SMALL_VIT, (32, 32, 3), clients=4, samples=2, cohort=2, chunk=2, rounds=2, batch_size=2),
    "gpt2 with lora": Job(TUNED | {"config": SMALL_GPT}, None, 4, samples=4, cohort=2, chunk=2, rounds=2, batch_size=2),
    "cnn, fedbuff": Job(SMALL_CNN, (12, 12), 20, samples=12, cohort=5, chunk=5, rounds=4, asynchronous=True),
    "checked": Job(SMALL_CNN, (12, 12), clients=12, samples=10, cohort=6, chunk=3, rounds=2, batch_size=4),
}


@dataclass(frozen=True)
class Case:
    """A run of a job."""

    job: str
    device: str  # gpu or cpu
    actors: int = 0  # client actors on Ray; 0: all in one process
    precision: str = "float32"  # of training; exact: float32 in convolutions, too
    repetition: int = 0
    graphs: str = "off"  # as in `resources.cuda_graphs`


def graph_cases() -> list[Case]:
    """Returns pairs of cases without and with CUDA graphs, in turn."""
    pairs = [(job, again) for again in range(3) for job in GRAPHED]
    return [Case(job, "gpu", repetition=again, graphs=graphs) for job, again in pairs for graphs in ("off", "on")]


def all_cases(device: str) -> list[Case]:
    """Returns all cases, the most telling first, for time may run out."""
    gpu = device == "gpu"
    exact = "exact" if gpu else "float32"
    cnn, vit, gpt = "cnn, 100 a round", "vit with lora", "gpt2 with lora"
    cases = [Case("checked", "cpu")]
    cases += [Case("checked", device, 0, exact, repetition) for repetition in (0, 1)]
    cases += [Case("cnn, 10 a round", device), Case(cnn, device), Case("cnn, fedbuff", device)]
    cases += [Case(cnn, device, actors) for actors in ((1, 2, 4) if gpu else (1, 2))]
    cases += [Case("cnn, fedbuff", device, 2)]
    cases += [Case(vit, device), Case(gpt, device), Case("resnet18", device)]
    cases += [Case(job, device, 0, "bfloat16") for job in (cnn, vit, gpt, "resnet18")]
    cases += [Case(job, device, 0, "tf32") for job in (cnn, vit, gpt, "resnet18") if gpu]
    cases += [Case(gpt, device, 2)]
    return list(dict.fromkeys(cases))


# --- in a process of their own: the runs ------------------------------------------------------------------------------


def work(jobs: dict[str, Job], cases: Sequence[Case], out: str) -> None:
    """Runs cases, and prints a line of JSON for each one that is over."""
    import torch

    import raysim
    from raysim.runs.place import RunPlace

    if any(case.actors for case in cases):
        RunPlace().connect([raysim.parse_scenario(jobs[case.job].scenario(case, Path(out))) for case in cases])
    for case in cases:
        try:
            result = raysim.run(jobs[case.job].scenario(case, Path(out)), out=out, inline=not case.actors)
            steps = result.pandas("steps")
            # The first step is left out, because libraries set themselves up in it.
            took = steps.elapsed_s.iloc[-1] - steps.elapsed_s.iloc[0]
            found = {
                "rate": jobs[case.job].cohort * (len(steps) - 1) / took,
                "digest": result.info["digest"]["run"],
                "model": str(result.folder / "model.safetensors"),
            }
        except Exception as error:  # the other cases may still be worth having
            found = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(found), flush=True)
        gc.collect()
        torch.cuda.empty_cache()


# --- in the main process ----------------------------------------------------------------------------------------------


class Memory:
    """Reads, twice a second, how much of the GPU's memory all processes use."""

    def __init__(self) -> None:
        self._peak: float | None = None
        threading.Thread(target=self._watch, daemon=True).start()

    def take(self) -> float | None:
        """Returns the most that was used since the last call, in MiB; None without a GPU."""
        peak, self._peak = self._peak, None
        return peak

    def _watch(self) -> None:
        while (used := _nvidia("memory.used")) is not None:
            self._peak = max(self._peak or 0.0, float(used))
            time.sleep(0.5)


def _nvidia(field: str) -> str | None:
    """Returns what nvidia-smi says of the first GPU; None if there is none."""
    command = ["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return answer.stdout.splitlines()[0].strip() if answer.returncode == 0 and answer.stdout.strip() else None


def measure(
    cases: Sequence[Case], small: bool, out: str, memory: Memory, deadline: float
) -> Iterator[tuple[Case, dict[str, Any]]]:
    """Runs cases with the same precision in a process of their own, and gives what each found, until the deadline."""
    command = [sys.executable, str(HERE / "gpu.py"), "--work", json.dumps([asdict(case) for case in cases])]
    command += ["--out", out, *(["--cpu"] if small else [])]
    paths = [str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    if cases[0].precision == "exact":
        environment["NVIDIA_TF32_OVERRIDE"] = "0"
    left = list(cases)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        killer = threading.Timer(max(deadline - time.monotonic(), 0), process.kill)
        killer.start()
        for line in process.stdout or ():
            if line.startswith("{"):
                yield left.pop(0), {**json.loads(line), "memory": memory.take()}
        process.wait()
        killer.cancel()
    if time.monotonic() < deadline:
        yield from ((case, {"error": f"its process ended with exit code {process.returncode}"}) for case in left)


def batches(cases: Sequence[Case]) -> Iterator[list[Case]]:
    """Groups neighbours that can share a process: exact ones or not, and all on Ray or none."""
    batch: list[Case] = []
    for case in cases:
        if batch and _kind(case) != _kind(batch[0]):
            yield batch
            batch = []
        batch.append(case)
    if batch:
        yield batch


def _kind(case: Case) -> tuple[bool, bool]:
    return case.precision == "exact", case.actors > 0


def apart(one: dict[str, Any], other: dict[str, Any]) -> float:
    """Returns how far two final models are apart, as the largest difference of a parameter."""
    from safetensors.numpy import load_file

    return float(np.abs(load_file(one["model"])["w"] - load_file(other["model"])["w"]).max())


def checks(found: dict[Case, dict[str, Any]], device: str) -> Iterator[tuple[str, bool]]:
    """Gives what was checked, and whether it holds. Checks whose runs are missing are left out."""
    ran = {case: line for case, line in found.items() if "error" not in line}
    checked = {case.device: line for case, line in ran.items() if case.job == "checked"}
    if {"cpu", "gpu"} <= checked.keys():
        far = apart(checked["cpu"], checked["gpu"])
        yield f"cpu and gpu: parameters are at most {CLOSE:g} apart, found {far:.1e}", far <= CLOSE
    here = [case for case in ran if case.device == device]
    groups = {"repeated runs": [case for case in here if case.job == "checked"]}
    for job in ("cnn, 100 a round", "cnn, fedbuff", "gpt2 with lora"):
        same = [case for case in here if case.job == job and case.precision == "float32"]
        groups[f"{job}, one process and any number of actors"] = same
    for what, cases in groups.items():
        if len(cases) > 1:
            same = len({ran[case]["digest"] for case in cases}) == 1
            yield f"{device}: {what} have the same digest, {len(cases)} runs", same
    yield from gains(found)
    for case, line in found.items():
        if "error" in line:
            yield f"{case}: {line['error']}", False


def gains(found: dict[Case, dict[str, Any]]) -> Iterator[tuple[str, bool]]:
    """Gives how many times as fast each job is with CUDA graphs, the median of its pairs, and whether that is enough;
    and whether the pairs have the same digests."""
    ran = {case: line for case, line in found.items() if "error" not in line}
    for job in GRAPHED:
        without = (case for case in ran if case.job == job and case.graphs == "off")
        pairs = [(ran[case], ran[other]) for case in without if (other := replace(case, graphs="on")) in ran]
        if pairs:
            gain, least = median(on["rate"] / off["rate"] for off, on in pairs), FASTER if job == GRAPHED[0] else 1
            yield f"{job}: at least {least} times as fast with CUDA graphs, found {gain:.2f}", gain >= least
            same = len({line["digest"] for pair in pairs for line in pair}) == 1
            yield f"{job}: the same digest with and without, {len(pairs)} pairs", same


def table(found: dict[Case, dict[str, Any]], pfl: float | None) -> list[str]:
    """Returns the lines of the table."""
    lines = [
        "| Job | On | Client actors | Precision | CUDA graphs | Updates a second | Memory, MiB |",
        "|---|---|---|---|---|---|---|",
    ]
    for case, line in found.items():
        if case.job == "checked" or "error" in line:
            continue
        memory = "" if line["memory"] is None else f"{line['memory']:.0f}"
        cells = [case.job, case.device, case.actors or "in process", case.precision, case.graphs]
        lines.append(f"| {' | '.join(map(str, cells))} | {line['rate']:.1f} | {memory} |")
    if pfl is not None:
        lines.append(f"| cnn, 10 a round | gpu | pfl-research, 1 process | float32 | | {pfl:.1f} | |")
    return lines


def pfl_rate(torchrun: str | None, deadline: float) -> float | None:
    """Returns the updates a second of pfl-research in the job `cnn`; None if it is not there, or fails."""
    if torchrun is None and importlib.util.find_spec("pfl") is None:
        return None
    sys.path.insert(0, str(HERE))
    from jobs import JOBS as PLAIN_JOBS

    job = PLAIN_JOBS["cnn"]
    with tempfile.TemporaryDirectory() as folder:
        _write_images(Path(folder))
        command = [torchrun] if torchrun else [sys.executable, "-m", "torch.distributed.run"]
        command += ["--nproc_per_node", "1", str(HERE / "pfl_job.py"), "cnn", "--root", folder]
        try:
            limit = max(deadline - time.monotonic(), 1)
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            return None
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"engine"')]
    return job.cohort * job.rounds / lines[0]["loop_seconds"] if lines else None


def _write_images(folder: Path) -> None:
    """Writes noise in the form of Fashion-MNIST's files."""
    generator = np.random.default_rng(0)
    for name, number in (("train", 60_000), ("t10k", 10_000)):
        images, labels = generator.integers(0, 2, (number, 28, 28), np.uint8), generator.integers(0, 10, number)
        for kind, array in (("images-idx3", images * 255), ("labels-idx1", labels.astype(np.uint8))):
            head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
            (folder / f"{name}-{kind}-ubyte.gz").write_bytes(gzip.compress(head + array.tobytes(), 1))


def report(found: dict[Case, dict[str, Any]], left: int, device: str, pfl: float | None) -> tuple[str, bool]:
    """Returns the report as Markdown, and whether all checks hold."""
    import torch

    where = _nvidia("name") if device == "gpu" else None
    driver = f", driver {_nvidia('driver_version')}" if where else ""
    head = f"{where or platform.processor() or platform.machine()}{driver}, {os.cpu_count()} CPUs"
    head += f", Python {platform.python_version()}, PyTorch {torch.__version__}"
    if device == "cpu":
        head += ". There was no GPU: small jobs on the CPU, whose rates say nothing about speed"
    held = list(checks(found, device))
    marks = [f"- {'holds' if holds else 'FAILS'}: {what}" for what, holds in held]
    late = [f"- left out, for time was over: {left} runs"] if left else []
    return "\n".join([f"{head}.", "", *table(found, pfl), "", *marks, *late, ""]), all(holds for _, holds in held)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="gpu.md", help="file for the table; default: gpu.md, here")
    parser.add_argument("--cpu", action="store_true", help="small jobs on the CPU, even where there is a GPU")
    parser.add_argument("--graphs", action="store_true", help="compare runs with and without CUDA graphs instead")
    parser.add_argument("--pfl", help="torchrun of an environment with pfl-research")
    parser.add_argument("--minutes", type=float, default=9.0, help="after which no more is run; default: 9")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(SMALL_JOBS if given.cpu else JOBS, [Case(**fields) for fields in json.loads(given.work)], given.out)
        return 0
    device = "cpu" if given.cpu or _nvidia("name") is None else "gpu"
    deadline = time.monotonic() + 60 * given.minutes
    found: dict[Case, dict[str, Any]] = {}
    if given.graphs and device == "cpu":
        parser.error("--graphs needs a GPU, and there is none, or --cpu was given")
    cases = graph_cases() if given.graphs else all_cases(device)
    memory = Memory()
    with tempfile.TemporaryDirectory() as runs:
        for batch in batches(cases):
            if time.monotonic() < deadline:
                for case, line in measure(batch, device == "cpu", runs, memory, deadline):
                    found[case] = line
                    print(f"{case}: {line.get('error') or line['rate']}", flush=True)
        plain = device == "gpu" and not given.graphs
        pfl = pfl_rate(given.pfl, deadline) if plain and time.monotonic() < deadline else None
        text, right = report(found, len(cases) - len(found), device, pfl)
    Path(given.out).write_text(text)
    print(f"\n{text}\nwritten to {given.out}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
