"""CUDA graphs: recorded steps have the bits of others, and what cannot be recorded is refused."""

import math
import random
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import own_modules
import pytest
import torch
from conftest import Simulate, digits
from local_tasks import CPU, make_task
from recorded_calls import Recorder, recorded
from torch import Tensor, nn

import raysim
from raysim.local import Local, graphs
from raysim.local.gradients import Gradient, GradientPoint, Take
from raysim.local.graphs import on_gpu, require_capturable
from raysim.local.net import Net
from raysim.local.optimizers import SGD
from raysim.local.samples import Pixels
from raysim.local.steps import first_kept
from raysim.parts.errors import BadInput
from raysim.parts.process import isolated
from raysim.workers.device import STAND_IN


@pytest.fixture(autouse=True)
def records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "on_gpu", recorded)


class Dropping(own_modules.Net):
    """With BatchNorm and dropout."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(nn.functional.dropout(x, 0.2, self.training))


def net(captured: bool, personal: tuple[str, ...] = ()) -> Net:
    with isolated(torch=True):
        torch.manual_seed(0)
        made = Net(Dropping((1, 8, 8), 10), personal, "cross_entropy", CPU, channels_last=False)
    made.captured = {} if captured else None
    return made


def trained(captured: bool, local: dict[str, Any], **keywords: Any) -> list[Any]:
    """Returns what three clients, the last of which has been there before, leave: bits and counts."""
    made, settings = (
        net(captured, ("head",)),
        Local.model_validate({"lr": 0.05, "batch_size": 8, "epochs": 3} | local, strict=False),
    )
    found: list[Any] = []
    kept: dict[int, Any] = {}
    for dispatch, (client, samples) in enumerate([(0, 20), (1, 44), (0, 20)]):
        task = make_task(made, samples, settings, key=(0, client, dispatch))
        task.optimizer = kept.setdefault(client, first_kept(settings.optimizer, made.w))
        result = task.train(made.model(), **keywords)
        assert result.loss_before is not None and result.loss_after is not None
        found += [result.w, result.model.buffers, result.loss_before, result.loss_after, result.steps]
        found += [made.seen, made.passes, *(vector.clone() for vector in task.optimizer.values())]
    if captured:
        assert made.captured is not None
        (steps,) = made.captured.values()
        assert len(steps._recordings) >= 2  # whole batches and ragged ones
    return found


MOMENTUM = {"name": "sgd", "momentum": 0.9}
GROUPS = [{"parameters": ["*.bias"], "lr_factor": 2.0, "weight_decay": 0.0}]
SETTINGS: dict[str, dict[str, Any]] = {
    "sgd": {},
    "momentum that is kept": {"optimizer": MOMENTUM | {"keep": True, "nesterov": True}, "weight_decay": 0.1},
    "dampening": {"optimizer": MOMENTUM | {"dampening": 0.5}},
    "adam that is kept": {"optimizer": {"name": "adam", "keep": True}},
    "adamw": {"optimizer": "adamw", "weight_decay": 0.1},
    "adagrad": {"optimizer": "adagrad"},
    "rmsprop": {"optimizer": {"name": "rmsprop", "momentum": 0.9, "centered": True}},
    "clipping": {"gradients": [{"name": "clip_norm", "max": 0.5}, {"name": "clip_value", "max": 0.1}]},
    "sam and pieces": {"gradients": [{"name": "accumulate", "micro_batch": 3}, "sam"]},
    "groups": {"groups": GROUPS, "weight_decay": 0.1},
    "groups of adamw": {"groups": GROUPS, "weight_decay": 0.1, "optimizer": "adamw"},
    "a schedule": {"lr": {"name": "cosine", "over": "steps", "start": 0.1, "end": 0.01, "length": 6}},
    "bfloat16": {"precision": "bfloat16"},
    "drawn batches": {"augment": [{"name": "function", "function": "test_graphs:noisy"}]},
}
KEYWORDS: dict[str, dict[str, Any]] = {
    "a proximal term": {"correction": lambda w: 0.1 * (w - 1)},
    "the parameters themselves": {"correction": lambda w: w},
    "the personal part": {"part": "personal"},
    "a tolerance": {"tolerance": 1e-9},
}


def noisy(x: Tensor) -> Tensor:
    return x + torch.randn(x.shape)


def same(one: Any, other: Any) -> bool:
    return torch.equal(one, other) if isinstance(one, Tensor) else bool(one == other)


@pytest.mark.parametrize("local", SETTINGS.values(), ids=SETTINGS)
def test_recorded_steps_have_the_bits_of_others(local: dict[str, Any]) -> None:
    assert all(map(same, trained(True, local), trained(False, local)))


@pytest.mark.parametrize("keywords", KEYWORDS.values(), ids=KEYWORDS)
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_so_have_those_of_a_part_and_with_a_correction(keywords: dict[str, Any], optimizer: str) -> None:
    local = {"optimizer": optimizer}
    assert all(map(same, trained(True, local, **keywords), trained(False, local, **keywords)))


def test_a_training_that_diverges_leaves_nothing_to_the_next_one() -> None:
    found = []
    for captured in (False, True):
        made = net(captured, ("head",))
        local = Local.model_validate({"batch_size": 8, "gradients": [{"name": "clip_norm", "max": 1.0}]}, strict=False)
        start = made.model()
        for first in (start.replace(w=start.w * math.nan), start):
            w = make_task(made, 40, local).train(first).w
        assert w.isfinite().all()
        found.append(w)
    assert torch.equal(*found)


def test_only_the_shapes_that_come_often_first_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others are steps as without graphs, and of other settings, the oldest go."""
    monkeypatch.setattr(graphs, "KEPT", 2)
    left = []
    for captured in (False, True):
        made = net(captured)
        for samples in (17, 18, 19, 20):
            found = make_task(made, samples, Local(batch_size=8, epochs=5)).train(made.model())
        left.append(found.w)
        recorded_shapes = [len(steps._recordings) for steps in (made.captured or {}).values()]
        for rate in (0.1, 0.2):
            make_task(made, 8, Local(batch_size=4, weight_decay=rate, lr=1 + rate)).train(made.model())
    assert torch.equal(*left) and recorded_shapes == [2] and made.captured is not None
    assert [steps.decay for steps in made.captured.values()] == [0.1, 0.2]


def test_no_step_reads_a_number_of_a_tensor() -> None:
    """On a GPU, that would wait until all work is over."""
    made = net(False)
    made.pixels = Pixels((0.5,), (0.2,), CPU)
    local = {
        "augment": ["crop", "flip"],
        "optimizer": "adamw",
        "weight_decay": 0.1,
        "gradients": [{"name": "clip_norm", "max": 1}],
    }
    task = make_task(made, local=Local.model_validate({"batch_size": 8} | local, strict=False))
    with Recorder() as recorder:
        task.train(made.model(), correction=lambda w: 0.1 * (w - task.received.w))
    assert len(recorder.calls) > 5 * 40
    with pytest.raises(RuntimeError, match="not permitted"), Recorder():
        float(task.received.w.sum())


@pytest.fixture
def on_a_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STAND_IN, "16")
    monkeypatch.setattr(graphs, "DEVICE", "cpu")


CNN = {"name": "cnn", "channels": [4], "kernel": 3}
LORA = {"name": "module", "module": "toys_lora:Words", "lora": {"targets": ["table", "wide"]}}
FALLING = {"name": "exponential", "start": 0.1, "factor": 0.5}
RUNS: dict[str, dict[str, Any]] = {
    "scaffold": {"algorithm": "scaffold"},
    "fedprox, with a rate that falls": {"algorithm": "fedprox", "local__lr": FALLING},
    "a head of each client, and a group": {
        "algorithm": "fedrep",
        "model__personal": ["head"],
        "clients": [{"name": "fast", "share": 0.5, "local": {"lr": 0.3, "batch_size": 8}}],
    },
    "adapters": {"model": LORA, "local__optimizer": "adamw"},
}


@pytest.mark.parametrize("more", RUNS.values(), ids=RUNS)
def test_runs_have_one_digest_and_one_hash(more: dict[str, Any], simulate: Simulate, on_a_stand_in: None) -> None:
    """Four rounds, in which most workers record steps."""
    made = digits(**{"resources__gpus_per_client": 1.0, "run__rounds": 4, "model": CNN} | more)
    off, on = (simulate(made, "--set", f"resources.cuda_graphs={value}") for value in ("off", "on"))
    assert off.digest == on.digest and off.info["scenario_hash"] == on.info["scenario_hash"]


class Counting(own_modules.Net):
    """Counts its passes."""

    passes = 0

    def forward(self, x: Tensor) -> Tensor:
        self.passes += 1
        return super().forward(x)


class Reading(own_modules.Net):
    """Waits for a number of its inputs."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * (1.0 if float(x.sum()) > 0 else 2.0)


class Holding(own_modules.Net):
    """Has a tensor that is no buffer."""

    def __init__(self, input_shape: Any, classes: int) -> None:
        super().__init__(input_shape, classes)
        self.own = torch.ones(())


class Keeping(own_modules.Net):
    """Keeps a tensor of its first pass."""

    scale = None

    def forward(self, x: Tensor) -> Tensor:
        if self.scale is None:
            self.scale = torch.ones(())
        return super().forward(x) * self.scale


@pytest.mark.parametrize(
    ("module", "why"),
    [
        (Counting, "a layer sets attributes in each pass"),
        (Reading, "operation not permitted when stream is capturing"),
        (Holding, "a layer has tensors that are neither parameters nor buffers"),
        (Keeping, "a layer keeps a tensor of an earlier pass"),
    ],
)
def test_a_network_that_a_graph_would_not_follow_is_refused(module: type[nn.Module], why: str) -> None:
    made = Net(module((1, 8, 8), 10), (), "cross_entropy", CPU, channels_last=False)
    with pytest.raises(BadInput, match=rf"resources\.cuda_graphs: must be off, .* captured: {why}.*; set it to off"):
        require_capturable(made)
        made.captured = {}
        make_task(made, 40, Local(batch_size=8, epochs=2)).train(made.model())


@pytest.mark.parametrize(
    "keywords", [{"loss": lambda output, target: output.mean()}, {"correction": lambda w, g: g - w}], ids=list
)
def test_functions_that_an_algorithm_makes_for_each_client_are_refused(keywords: dict[str, Any]) -> None:
    made = net(True)
    with pytest.raises(BadInput, match="the algorithm has a loss, a gradient or a correction of gradients of its own"):
        make_task(made).train(made.model(), **keywords)


def test_too_little_memory_is_no_fault_of_the_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(work: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(graphs, "on_gpu", full)
    made = net(True)
    with pytest.raises(torch.OutOfMemoryError):
        make_task(made, local=Local(batch_size=8)).train(made.model())


class Slow(SGD):
    """An optimiser of a user."""


class Drawing(Gradient):
    """Draws from the generator of the training."""

    name: str = "test_graphs:Drawing"

    def take(self, before: Take, at: GradientPoint, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        loss, gradient = before(x, y)
        return loss, gradient + torch.randn(gradient.shape, generator=at.generator())


def test_a_part_that_draws_is_refused() -> None:
    made = net(True)
    with pytest.raises(BadInput, match=r"a part of local\.gradients draws, or takes gradients of single samples"):
        make_task(made, local=Local(gradients=(Drawing(),))).train(made.model())


def test_what_cannot_be_recorded_is_told_with_all_other_problems() -> None:
    noise = {"name": "noise", "std": 0.1}
    local = {"batches": "poisson", "gradients": [noise], "optimizer": {"name": "test_graphs:Slow"}}
    loss = {"name": "cross_entropy", "class_weights": [1.0] * 10}
    with pytest.raises(raysim.ScenarioError) as raised:
        raysim.parse_scenario(digits(local=local, run__loss=loss, resources__cuda_graphs="on"))
    paths = {problem.path for problem in raised.value.problems}
    keys = {"local.gradients", "local.batches", "local.optimizer", "run.loss.class_weights"}
    assert paths == {*keys, "resources.cuda_graphs"}


def test_draws_that_each_replay_would_repeat_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a GPU, nothing is captured, but code runs as it does then."""
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: SimpleNamespace(replay=None))
    monkeypatch.setattr(torch.cuda, "graph", lambda made: nullcontext())
    with isolated(torch=True):
        assert on_gpu(lambda: 7) == (None, 7)
        for draw in (random.random, lambda: np.random.rand(), lambda: torch.rand(())):
            with pytest.raises(RuntimeError, match="it draws random numbers outside of the GPU"):
                on_gpu(draw)
