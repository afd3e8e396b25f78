"""Modules of one's own: they train like shipped models, and what does not fit is told before the first round."""

from pathlib import Path
from typing import Any

import own_modules
import pytest
import torch
from conftest import Raw, Simulate, digits
from model_inputs import CIFAR, MNIST, images

import raysim
from raysim.models import Module
from raysim.models.build import initialise
from raysim.models.layout import Layout


def own(module: str, **keys: Any) -> Raw:
    model = {"name": "module", "module": f"own_modules:{module}", **keys}
    return digits(model=model, run__rounds=2, run__evaluate_every=2)


def test_a_module_trains_and_comes_back(simulate: Simulate, tmp_path: Path) -> None:
    result = simulate(own("Net", args={"hidden": 8, "rates": [0.5, 1]}, personal=["head"]))
    module = result.module()
    assert isinstance(module, own_modules.Net)
    assert (module.dense.out_features, module.rates) == (8, [0.5, 1])
    assert result.state_dict()["conv.weight"].shape == (6, 1, 3, 3)
    assert module(torch.zeros(3, 1, 8, 8)).shape == (3, 10)


@pytest.mark.parametrize("name", ["Net", "lazy"])
def test_a_class_or_function_may_be_named_alone(name: str) -> None:
    short, long = (raysim.parse_scenario(digits(model=model)) for model in (f"own_modules:{name}", own(name)["model"]))
    assert short == long


def test_a_module_computes_what_it_computes_outside_of_raysim() -> None:
    for shape in (MNIST, CIFAR):
        part = Module(module=own_modules.Net, args={"hidden": 4})
        module, plain = initialise(part, shape, 10, seed=0).eval(), own_modules.Net(shape, 10, 4).eval()
        plain.load_state_dict(module.state_dict())
        layout = Layout(module, channels_last=part.channels_last)
        layout.bind(module, layout.flatten(module))
        x = images(5, *shape)
        assert torch.equal(module(x.contiguous(memory_format=torch.channels_last)), plain(x))


def test_a_module_itself_trains_from_its_values(tmp_path: Path) -> None:
    world = {"dispatch": {"per_round": 6}}
    net = own_modules.Net((1, 8, 8), 10)
    result, other = (
        raysim.run({**own("Net"), "model": model, "algorithm": algorithm, "world": world}, out=tmp_path, inline=True)
        for model, algorithm in ((net, "fedavg"), (Module.of(net, personal=("head",)), "fedper"))
    )
    assert result.info["scenario"]["model"] == {**other.info["scenario"]["model"], "personal": []}
    assert set(result.info["scenario"]["model"]["given"]) == {"hash"}
    assert isinstance(result.module(), own_modules.Net)
    head = other.module().state_dict()["head.weight"]
    assert torch.equal(head, net.head.weight)  # which stayed with the clients
    assert not torch.equal(result.state_dict()["head.weight"], net.head.weight)
    with pytest.raises(ValueError, match=r"`given` must be given from Python again"):
        raysim.Result(result.folder).module()
    again = raysim.Result(result.folder, model=Module.of(own_modules.Net((1, 8, 8), 10)))
    assert torch.equal(again.state_dict()["head.weight"], result.state_dict()["head.weight"])


def test_tied_weights_stay_tied(simulate: Simulate) -> None:
    result = simulate(own("Tied"))
    module = result.module()
    assert isinstance(module, own_modules.Tied)
    assert module.first.weight is module.second.weight
    assert result.info["parameters"] == 64 * 64 + 64 * 10 + 10


@pytest.mark.parametrize("name", ["first", "second.weight"])
def test_tied_weights_are_chosen_by_any_of_their_names(name: str) -> None:
    module = initialise(Module(module="own_modules:Tied"), (64,), 10, 0)
    assert [entry.name for entry in Layout(module, (name,)).entries] == ["head.weight", "head.bias", "first.weight"]
    frozen = initialise(Module(module="own_modules:Tied", frozen=(name,)), (64,), 10, 0)
    assert not frozen.second.weight.requires_grad


def test_doubles_become_floats(simulate: Simulate) -> None:
    assert simulate(own("Flat", args={"dtype": "float64"})).state_dict()["w"].dtype == torch.float32


def test_a_module_starts_from_the_weights_of_a_file(tmp_path: Path) -> None:
    net = own_modules.Net((1, 8, 8), 10)
    torch.save(net.state_dict(), tmp_path / "net.pt")
    part = Module(module=own_modules.Net, weights=str(tmp_path / "net.pt"))
    assert torch.equal(initialise(part, (1, 8, 8), 10, seed=3).dense.weight, net.dense.weight)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ({"module": "own_modules:Nothing"}, "model.module: must be module:Class, which can be imported, got"),
        ({"module": "own_modules"}, "model.module: must be text that matches"),
        ({"module": "math:pi"}, "model.module: must name a function or a class, got 'math:pi', which is 3.14"),
        *(
            ({"module": path}, f"a class of yours or of a package, got '{path}', which is Python's own; call it in")
            for path in ("os:system", "subprocess:Popen", "builtins:exec", "torch:os.system")
        ),
        ({"module": "own_modules:Net", "args": {"hiden": 1}}, "model.args.hiden: unknown argument (did you mean"),
        ({"module": "torch.nn:Linear"}, "model.args.in_features: must be given, got nothing"),
    ],
)
def test_what_is_wrong_with_a_module_is_told_by_a_check(model: Raw, expected: str) -> None:
    with pytest.raises(raysim.ScenarioError) as refused:
        raysim.parse_scenario(digits(model={"name": "module", **model}))
    assert expected in str(refused.value)


@pytest.mark.parametrize(
    ("model", "more", "expected"),
    [
        ({"module": "frozen"}, {}, "model: must have a parameter that is trained, got none, and 1 frozen ones"),
        ({"module": "no_module"}, {}, "model.module: own_modules:no_module must give a torch.nn.Module, got {}"),
        ({"module": "Flat", "args": {"dtype": "complex64"}}, {}, "must have real parameters, which become float32"),
        ({"module": "Flat", "args": {"outputs": 7}}, {}, "model: must return logits (n, 10), one for each of 10"),
        ({"module": "Pair"}, {}, "model: must return one tensor of floats, got tuple; return the logits alone"),
        ({"module": "Net", "head": "heed"}, {}, "model.head: must be a sub-module's name, got 'heed'; nearest are 'h"),
        ({"module": "Flat"}, {"algorithm": "knn_per"}, "model: must give embeddings, and what enters its head is not"),
    ],
)
def test_a_module_that_does_not_fit_ends_the_run_before_its_first_round(
    model: Raw, more: Raw, expected: str, tmp_path: Path
) -> None:
    raw = own(model.pop("module"), **model)
    with pytest.raises(raysim.RunFailed) as failed:
        raysim.run(raysim.parse_scenario({**raw, **more}), out=tmp_path, inline=True)
    assert expected in str(failed.value)
    assert not failed.value.traceback


def test_a_module_says_what_its_embedding_is(simulate: Simulate) -> None:
    raw = digits(
        model={"name": "module", "module": "own_modules:Net", "head": "dense"},
        algorithm="knn_per",
        run={"rounds": 1, "evaluate_clients": 2},
        data__local_test=0.2,
    )
    assert simulate(raw).pandas("evaluations")["subject"].isin(["client"]).any()
