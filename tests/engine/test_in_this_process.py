"""A run in the user's own process: beside other runs, with what that process has set, and what is left there."""

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
from raysim.parts.process import unusual_settings

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
    "default_dtype": (torch.get_default_dtype, torch.set_default_dtype, torch.float64),
    "grad_enabled": (torch.is_grad_enabled, torch.set_grad_enabled, False),
    "matmul": (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "medium"),
    "deterministic": (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode, "error"),
    "anomaly": (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly, True),
    "fastpath": (torch.backends.mha.get_fastpath_enabled, torch.backends.mha.set_fastpath_enabled, False),
    "autocast": (
        lambda: torch.is_autocast_enabled("cpu"),
        lambda on: torch.set_autocast_enabled("cpu", on),
        True,
    ),
    "denormal": (lambda: False, torch.set_flush_denormal, True),
    "numpy.geterr": (np.geterr, lambda kinds: np.seterr(**kinds), dict.fromkeys(("divide", "over", "under"), "raise")),
}


@pytest.mark.parametrize("which", CASES)
def test_settings_that_a_new_process_does_not_have_are_known(which: str) -> None:
    assert unusual_settings() == []
    read, set_to, other = CASES[which]
    before = read()
    try:
        set_to(other)
        (told,) = unusual_settings()
    finally:
        set_to(before)
    assert which in told


@pytest.mark.parametrize("block", [torch.inference_mode, lambda: torch.device("meta")], ids=["inference", "device"])
def test_blocks_around_a_run_are_known(block: Callable[[], AbstractContextManager[Any]]) -> None:
    with block():
        assert unusual_settings()


def test_a_run_tells_them_before_it_begins_and_in_its_folder(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def progress(_: object) -> None:
        assert "get_float32_matmul_precision() is medium in this process, and highest in a new one" in caplog.text

    torch.set_float32_matmul_precision("medium")
    try:
        (note,) = raysim.run(SMALL, inline=True, out=tmp_path, observers=[progress]).info["notes"]
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")
    assert "torch.get_float32_matmul_precision() is medium" in note


def test_the_number_of_threads_is_the_scenarios_and_then_the_callers_again(right: str, tmp_path: Path) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert digest(tmp_path) == right
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


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
