"""`raysim check --data`: what is missing or wrong in what scenarios name; and `raysim run` with damaged files."""

import gzip
import os
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import QUICKSTART, command, write
from conftest import Raw, digits, quadratic

import raysim
from raysim.data.sources.table import Table
from raysim.data.sources.text import Text as Texts
from raysim.parts.errors import BadInput, located

MISFITS = """
from torch import nn

class Narrow(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(65, 10)
    def forward(self, x):
        return self.head(x.flatten(1))

def few():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 7))

class Divides(Narrow):
    def forward(self, x):
        x = x.flatten(1)
        return self.head.weight[:, :64].matmul(x.T).T / (x.sum() - x.sum())

def vector(outputs, labels):
    return outputs.mean(0)

def mean(outputs, labels):
    return outputs.mean()

def wrong(outputs, labels):
    return (outputs.argmax(1) != labels).float()
"""


def told(tmp_path: Path, raw: Raw) -> list[str]:
    """What is told of a scenario, one line for each problem, without the name of the file."""
    path = write(tmp_path, raw)
    answer = command("check", path, "--data")
    assert answer.exit_code == (2 if answer.stderr else 0)
    return [line.removeprefix(f"{path}: ") for line in answer.stderr.splitlines()]


def with_data(data: Raw, **more: Any) -> Raw:
    return {**digits(**more), "data": {"clients": 6, "partition": "iid", **data}}


def test_what_is_right_is_said_with_what_the_data_are() -> None:
    answer = command("check", QUICKSTART, "--data")
    assert answer.exit_code == 0
    assert answer.stdout.splitlines() == [
        f"{QUICKSTART}: right (quickstart, fedbuff, 500 clients)",
        f"{QUICKSTART}: data: x: images (1, 8, 8) of uint8, each channel with mean 0 and deviation 1",
        f"{QUICKSTART}: data: y: 10 classes",
    ]


def test_the_model_must_fit_the_data(tmp_path: Path) -> None:
    wrong = quadratic([[1.0, 2.0]], "fedavg", {"dispatch": {"per_round": 1}}, 2, start=0.0, model__start=[1.0] * 3)
    assert told(tmp_path, wrong) == [
        "model.start: must have as many values as the data's vectors, which is 2, got 3: (1.0, 1.0, 1.0)"
    ]
    (line,) = told(tmp_path, digits(model={"name": "torchvision", "model": "resnet81"}))
    assert line.startswith("model.model: must be a classifier of torchvision, got 'resnet81'; nearest are 'resnet18'")


@pytest.mark.parametrize(
    ("targets", "run", "expected"),
    [
        (False, {"metrics": ["ece", "macro_f1"], "loss": "focal"}, []),
        (True, {"metrics": ["rmse"], "loss": "huber"}, []),
        (False, {"metrics": ["ece", "rmse"]}, ["run.metrics.1: rmse needs targets, and arrays has none; take another"]),
        (True, {"metrics": ["ece"]}, ["run.metrics.0: ece needs labels, and arrays has none; take another"]),
        (True, {"loss": "focal"}, ["run.loss: focal needs labels, and arrays has none; take another"]),
    ],
)
def test_metrics_and_the_loss_must_fit_data_that_are_known_once_they_are_loaded(
    targets: bool, run: Raw, expected: list[str], tmp_path: Path
) -> None:
    y = np.arange(40) % 2
    np.savez(tmp_path / "brought.npz", x=np.ones((40, 3)), y=y.astype(float) if targets else y)
    brought = {"name": "arrays", "path": str(tmp_path / "brought.npz"), "task": "regression" if targets else None}
    raw = with_data(brought, model="linear", run={"rounds": 1, **run})
    assert command("check", write(tmp_path, raw)).exit_code == 0
    assert told(tmp_path, raw) == expected
    with pytest.raises(raysim.RunFailed, match=expected[0]) if expected else nullcontext():
        raysim.run(raw, out=tmp_path / "runs", inline=True)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"model": {"name": "module", "module": "misfits:Narrow"}},
            "model: must predict and train on two samples, got RuntimeError: mat1 and mat2 shapes cannot be "
            "multiplied (2x64 and 65x10) - the model was tried on inputs (2, 1, 8, 8) torch.float32 with labels (2,) "
            "torch.int64; parameters become float32, and images are in channels-last memory, raised in "
            "misfits:Narrow.forward, {file}:9; run it to see the traceback",
        ),
        (
            {"model": {"name": "module", "module": "misfits:few"}},
            "model: must return logits (n, 10), one for each of 10 labels, got shape (2, 7) for n = 2 inputs of shape "
            "(1, 8, 8); make its last layer 10 wide",
        ),
        (
            {"model": {"name": "module", "module": "misfits:Divides"}},
            "model: must have a finite loss before any training, got nan on two samples; look for a division by zero, "
            "or large inputs",
        ),
        (
            {"run__metrics": ["misfits:vector"]},
            "run.metrics: vector must give one number, got a tensor of shape (10,)",
        ),
        (
            {"run__loss": "misfits:mean"},
            "run.loss: must give a loss for each sample, shape (2,), got shape (); do not average them",
        ),
        (
            {"run__loss": "misfits:wrong"},
            "run.loss: must give losses that have a gradient, got some without; do not detach outputs",
        ),
    ],
)
def test_model_loss_and_metrics_are_tried(
    change: Raw, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "misfits.py").write_text(MISFITS)
    monkeypatch.syspath_prepend(tmp_path)
    (line,) = told(tmp_path, digits(**change))
    line = re.sub(r" \([^()]*misfits.py:19\)$", "", line.replace("addmm: ", ""))  # imported once for all of them
    assert line == expected.replace("{file}", str(tmp_path / "misfits.py"))


def test_a_script_must_be_followed(tmp_path: Path) -> None:
    delay = {"name": "scripted", "delays": [[2.0, 0.0]]}
    (line,) = told(tmp_path, quadratic([1.0], "fedavg", {"dispatch": {"picks": [[0], [0]]}, "delay": delay}, 2))
    assert line.startswith("world.dispatch.picks: round 1 must pick idle clients, got 0")


def test_problems_are_told_together(tmp_path: Path) -> None:
    raw = digits(
        public__samples=5000,
        server_data={"name": "in_domain", "samples": 400},
        model={"name": "linear", "personal": ["head"]},
        algorithm="fed_ft",
    )
    lines = told(tmp_path, raw)
    assert [line.split(": ")[0] for line in lines] == ["server_data.samples", "public.samples", "model.personal"]
    missing = with_data({"name": "arrays", "path": "none.npz"}, model={"name": "timm", "model": "vti"})
    assert [line.split(": ")[0] for line in told(tmp_path, missing)] == ["data.path", "model.model"]


def test_a_partition_that_does_not_fit_is_told_at_its_key(tmp_path: Path) -> None:
    for partition, path in (({"name": "natural", "by": "user"}, "data.partition"), ("iid", "data.clients")):
        clients = 6 if path == "data.partition" else 5000
        (line,) = told(tmp_path, digits(data__partition=partition, data__clients=clients))
        assert line.startswith(("data.partition: ", f"{path}: ")), line


def parquet(root: Path) -> Raw:
    table = pa.table({"x": np.arange(60.0), "kind": np.arange(60) % 3})
    pq.write_table(table, root / "a.parquet")
    return {"name": "table", "path": str(root / "a.parquet"), "label": "kind"}


def csv(root: Path) -> Raw:
    with gzip.open(root / "a.csv.gz", "wt") as file:
        file.write("x,kind\n" + "".join(f"{row},{row % 3}\n" for row in range(600)))
    return {"name": "table", "path": str(root / "a.csv.gz"), "label": "kind"}


def folders(root: Path) -> Raw:
    from PIL import Image

    for kind in "ab":
        (root / "images" / kind).mkdir(parents=True)
        for number in range(12):
            pixels = np.random.default_rng(number).integers(256, size=(9, 9, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(root / "images" / kind / f"{number}.png")
    return {"name": "image_folder", "path": str(root / "images"), "size": 8}


@pytest.mark.parametrize("make", [parquet, csv, folders])
@pytest.mark.parametrize("how", ["cut", "flipped"])
def test_a_damaged_file_is_named_in_one_line(tmp_path: Path, make: Any, how: str) -> None:
    """Those of other sources, too, as the tests of these say."""
    data = make(tmp_path)
    raw = with_data(data, model="linear", world__dispatch={"per_round": 2}, run__rounds=1)
    assert told(tmp_path, raw) == []
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".yaml"]
    file = max(files, key=lambda path: path.stat().st_size)
    content = file.read_bytes()
    half = len(content) // 2
    file.write_bytes(content[:half] if how == "cut" else bytes(255 - byte for byte in content[:half]) + content[half:])
    (line,) = told(tmp_path, raw)
    assert line.startswith("data: ")
    assert str(file) in line or file.name.removesuffix(".gz") in line
    assert "again" in line


def test_weights_that_are_damaged_are_named(tmp_path: Path) -> None:
    for name in ("w.safetensors", "w.pth"):
        (tmp_path / name).write_bytes(b"PK\3\4 not weights at all")
        model = {"name": "torchvision", "model": "resnet18", "weights": str(tmp_path / name)}
        (line,) = told(tmp_path, digits(model=model))
        assert line.startswith(f"model.weights: '{tmp_path / name}' must "), line
        assert "Traceback" not in line


@pytest.mark.parametrize("kind", ["table.csv", "text.jsonl", "text.json", "text.csv", "text.txt"])
def test_a_pipe_in_place_of_data_is_told_and_not_waited_for(kind: str, tmp_path: Path) -> None:
    name, _, ending = kind.partition(".")
    file = tmp_path / f"pipe.{ending}"
    os.mkfifo(file)
    with pytest.raises(BadInput, match=r"pipe\.\w+' cannot be read: it is not a regular file$"), located("data"):
        part = Table(path=str(file), label="y") if name == "table" else Texts(path=str(file), length=8)
        part.load()
