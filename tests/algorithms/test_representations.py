"""MOON, FedProto and Fed-RoD beside loops that follow the papers' losses with autograd alone."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import Raw, Simulate, digits
from plain_run import PlainRun
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, cross_entropy
from witness import WitnessPool, execute

from raysim import ScenarioError, parse_scenario

CLASSES = 10


def two_clients(algorithm: Any, rounds: int, **more: Any) -> Raw:
    """Two clients that differ, whose two steps a round take all of their samples."""
    local = {"lr": 0.5, "batch_size": None, "steps": 2}
    raw: Raw = {"world": {"dispatch": {"picks": [[0, 1]] * rounds}}, "run": {"rounds": rounds}}
    return digits(algorithm=algorithm, local=local, data__clients=2, **{"model__hidden": [8], **raw, **more})


class Loop:
    """The first model of a scenario, and its clients' samples."""

    def __init__(self, raw: Raw) -> None:
        plain = PlainRun(raw)
        rows = (plain.federation.train_rows(client) for client in range(plain.federation.clients))
        self.samples = [plain.loader(plain.federation.train, of_client) for of_client in rows]
        self.first: Any = deepcopy(plain.net.module)
        self.flat: Callable[[nn.Module], Tensor] = plain.net.layout.flatten

    def mean(self, models: list[Any]) -> nn.Module:
        """The average of models, by samples."""
        shares = torch.tensor([len(y) for _, y in self.samples], dtype=torch.float32)
        average = deepcopy(self.first)
        parameters = zip(average.parameters(), *(model.parameters() for model in models), strict=True)
        for parameter, *clients in parameters:
            parameter.data = torch.tensordot(shares / shares.sum(), torch.stack([c.data for c in clients]), 1)
        return average


def descend(model: Any, parameters: Any, loss: Callable[[Any], Tensor]) -> Any:
    """The model after two steps of rate 0.5."""
    optimizer = torch.optim.SGD(parameters(model), lr=0.5)
    for _ in range(2):
        optimizer.zero_grad()
        loss(model).backward()
        optimizer.step()
    return model


def everything(model: nn.Module) -> Any:
    return model.parameters()


def close(one: Any, other: Any) -> None:
    torch.testing.assert_close(torch.as_tensor(one), torch.as_tensor(other).detach(), rtol=1e-4, atol=1e-5)


def test_moon_minimises_the_contrastive_loss(simulate: Simulate) -> None:
    raw = two_clients({"name": "moon", "mu": 2.0, "temperature": 0.4}, 3)
    loop = Loop(raw)
    server, last = loop.first, [loop.first, loop.first]
    for _ in range(3):
        for client, (x, y) in enumerate(loop.samples):

            def loss(model: Any, x: Tensor = x, y: Tensor = y, others: Any = (server, last[client])) -> Tensor:
                z = model[:-1](x)
                near, far = (torch.exp(cosine_similarity(z, m[:-1](x).detach()) / 0.4) for m in others)
                return cross_entropy(model(x), y) - 2.0 * torch.log(near / (near + far)).mean()

            last[client] = descend(deepcopy(server), everything, loss)
        server = loop.mean(last)
    close(simulate(raw).vectors()["w"], loop.flat(server))


def test_fedproto_draws_embeddings_to_prototypes(tmp_path: Path) -> None:
    raw = two_clients({"name": "fedproto", "lam": 2.0, "predict": "model"}, 2, run__save_clients=True)
    loop, pool = Loop(raw), WitnessPool()
    own = [deepcopy(loop.first) for _ in loop.samples]
    prototypes: Tensor | None = None
    for _ in range(2):
        for model, (x, y) in zip(own, loop.samples, strict=True):

            def loss(model: Any, x: Tensor = x, y: Tensor = y, near: Tensor | None = prototypes) -> Tensor:
                pull = 0.0 if near is None else 2.0 * (model[:-1](x) - near[y]).square().mean()
                return cross_entropy(model(x), y) + pull

            descend(model, everything, loss)
        z = torch.cat([model[:-1](x).detach() for model, (x, _) in zip(own, loop.samples, strict=True)])
        y = torch.cat([y for _, y in loop.samples])
        prototypes = torch.stack([z[y == label].mean(0) for label in range(CLASSES)])
    execute(raw, tmp_path, pool)
    close(pool.server_state["prototypes"], prototypes)
    for model, state in zip(own, pool.client_states.values(), strict=True):
        close(state["w"], loop.flat(model))


def test_fedproto_predicts_the_label_of_the_nearest_prototype() -> None:
    """A client that is away keeps its prototypes, so labels that only it holds can still be predicted."""
    raw = two_clients("fedproto", 2, world={"dispatch": {"picks": [[0], [1]]}})
    run = PlainRun(raw)
    before = run.clients[1]
    assert run.algorithm.personal(run.task(1, run.message), run.message, before).w is before["w"]  # type: ignore[union-attr]
    run.run()
    message, state, task = run.message, run.clients[0], run.task(0, run.message)
    message = {**message, "known": message["known"].index_fill(0, torch.tensor([3]), 0)}
    predict: Any = run.algorithm.personal(task, message, state)
    z = task.embed(task.received.replace(w=state["w"]), task.x)
    distances = torch.stack([(z - prototype).square().sum(1) for prototype in message["prototypes"]], 1)
    others = [label for label in range(CLASSES) if label != 3]
    close(predict(task.x)[:, others], -distances[:, others])
    close(predict(task.x)[:, 3], -2 * distances[:, others].amax(1))


def test_fedproto_keeps_the_prototypes_of_labels_that_nobody_reports(tmp_path: Path) -> None:
    pools = [WitnessPool(), WitnessPool()]
    for pool, picks in zip(pools, ([[0]], [[0], [1]]), strict=True):
        raw = two_clients("fedproto", len(picks), world={"dispatch": {"picks": picks}}, data__partition__alpha=0.05)
        execute(raw, tmp_path / str(len(picks)), pool)
    held = [set(y.tolist()) for _, y in Loop(raw).samples]
    first, second = (pool.server_state for pool in pools)
    assert held[0] - held[1]
    for label in range(CLASSES):
        stays = np.array_equal(first["prototypes"][label], second["prototypes"][label])
        assert stays == (label not in held[1])
        assert second["known"][label] == (label in held[0] | held[1])


def test_fed_rod_balances_the_shared_head_and_adds_a_personal_one(tmp_path: Path) -> None:
    raw = two_clients("fed_rod", 2, model={"name": "mlp", "hidden": [8], "personal": ["head"]}, run__save_clients=True)
    loop, pool = Loop(raw), WitnessPool()
    server, heads = loop.first, [nn.Linear(8, CLASSES) for _ in loop.samples]
    for head in heads:
        for parameter in head.parameters():
            nn.init.zeros_(parameter)
    for _ in range(2):
        models = []
        for head, (x, y) in zip(heads, loop.samples, strict=True):
            counts = torch.stack([(y == label).sum() for label in range(CLASSES)])

            def balanced(model: Any, x: Tensor = x, y: Tensor = y, counts: Tensor = counts) -> Tensor:
                raised = counts * model(x).exp()
                return -(raised[torch.arange(len(y)), y] / raised.sum(1)).log().mean()

            models.append(descend(deepcopy(server), everything, balanced))
            z, generic = models[-1][:-1](x).detach(), models[-1](x).detach()

            def own(head: Any, z: Tensor = z, y: Tensor = y, generic: Tensor = generic) -> Tensor:
                return cross_entropy(generic + head(z), y)

            descend(head, everything, own)
        server = loop.mean(models)
    execute(raw, tmp_path, pool)
    close(pool.server_state["w"], loop.flat(server))
    for head, state in zip(heads, pool.client_states.values(), strict=True):
        close(state["head"][: 8 * CLASSES], head.weight.flatten())


@pytest.mark.parametrize(
    ("algorithm", "more", "problem"),
    [
        ("moon", {"data": {"name": "linear_regression", "clients": 4}, "model": "linear"}, "moon needs labels"),
        ("fedproto", {"run__save_clients": True}, r"run\.save_clients: must be false for fedproto"),
        ("moon", {"local__augment": ["mixup"]}, r"local\.augment: must not have mixup, because moon needs"),
        ("fed_rod", {}, r"model\.personal: must name the personal parameters"),
    ],
)
def test_what_does_not_fit_is_refused(algorithm: str, more: Raw, problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        parse_scenario(digits(algorithm=algorithm, **more))
