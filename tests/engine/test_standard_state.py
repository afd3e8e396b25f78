"""A run in a process gives the same bits whatever that process has set, beside other runs, and leaves it as it was."""

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import digits, override

import raysim

SMALL = override(
    digits(), model={"name": "cnn", "channels": [4]}, algorithm="fedavg", run={"rounds": 2, "evaluate_every": 2}
)


def digest(out: Path) -> str:
    return raysim.run(SMALL, inline=True, out=out).digest


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> str:
    return digest(tmp_path_factory.mktemp("right"))


def test_runs_in_threads_equal_runs_in_turn(right: str, tmp_path: Path) -> None:
    with ThreadPoolExecutor(3) as pool:
        assert set(pool.map(digest, [tmp_path] * 4)) == {right}


def test_a_run_may_start_another_one(right: str, tmp_path: Path) -> None:
    inner: list[str] = []

    def progress(_: object) -> None:
        if not inner:
            inner.append(digest(tmp_path))

    assert raysim.run(SMALL, inline=True, out=tmp_path, observers=[progress]).digest == right == inner[0]


CASES: dict[str, tuple[Callable[[], Any], Callable[[Any], Any], Any]] = {
    "dtype": (torch.get_default_dtype, torch.set_default_dtype, torch.float64),
    "grad": (torch.is_grad_enabled, torch.set_grad_enabled, False),
    "matmul": (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "medium"),
    "deterministic": (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode, "error"),
    "threads": (torch.get_num_threads, torch.set_num_threads, 2),
    "anomaly": (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly, True),
    "attention": (torch.backends.mha.get_fastpath_enabled, torch.backends.mha.set_fastpath_enabled, False),
    "autocast": (
        lambda: torch.is_autocast_enabled("cpu"),
        lambda on: torch.set_autocast_enabled("cpu", on),
        True,
    ),
    "numpy": (np.geterr, lambda kinds: np.seterr(**kinds), dict.fromkeys(("divide", "over", "under"), "raise")),
}


@pytest.mark.parametrize("which", CASES)
def test_what_the_caller_has_set_decides_no_bits_and_stays(which: str, right: str, tmp_path: Path) -> None:
    read, set_to, other = CASES[which]
    before = read()
    try:
        set_to(other)
        changed = read()
        assert digest(tmp_path) == right
        assert read() == changed
    finally:
        set_to(before)


@pytest.mark.parametrize("block", [torch.inference_mode, lambda: torch.device("meta")], ids=["inference", "device"])
def test_a_block_around_a_run_decides_no_bits(
    block: Callable[[], AbstractContextManager[Any]], right: str, tmp_path: Path
) -> None:
    with block():
        assert digest(tmp_path) == right


def test_the_callers_generators_go_on_where_they_were(tmp_path: Path) -> None:
    def draws() -> list[float]:
        return [random.random(), float(np.random.random()), float(torch.rand(()))]

    def seeded() -> None:
        random.seed(5)
        np.random.seed(5)
        torch.manual_seed(5)

    seeded()
    expected = draws()
    seeded()
    digest(tmp_path)
    assert draws() == expected


def test_each_thread_has_streams_of_its_own() -> None:
    from raysim.parts.rng import stream_of

    here, there = stream_of(0, "train"), []
    thread = threading.Thread(target=lambda: there.append(stream_of(0, "train")))
    thread.start()
    thread.join()
    assert here is stream_of(0, "train") is not there[0]
