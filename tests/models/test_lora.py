"""Low-rank adaptation: what is trained, what travels, and what a finished run gives back."""

import gc
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import Raw, Simulate, digits
from peft import LoraConfig, inject_adapter_in_model
from torch import Tensor, nn
from witness import execute

import raysim
from actors import InlinePool
from raysim import parse_scenario
from raysim.data import Arrays, divided, federate
from raysim.data.federation.partition import Iid
from raysim.local.samples import Loader
from raysim.models import CNN, MLP, CausalLM, Lora, ModelPart, Module, SequenceClassifier, Timm
from raysim.models.build import initialise
from raysim.models.layers import BoundedLinear
from raysim.models.layout import Layout
from raysim.models.lora import adaptable
from raysim.parts.rng import torch_seed
from raysim.workers.requests import TrainRequest

VIT = "vit_tiny_patch16_224"  # 12 blocks of width 192
SHAPE = (3, 32, 32)
GPT = {"model_type": "gpt2", "n_layer": 1, "n_embd": 16, "n_head": 2, "n_positions": 12}
BERT = {"model_type": "distilbert", "n_layers": 1, "dim": 16, "n_heads": 2, "hidden_dim": 24}
QWEN = {"model_type": "qwen2", "num_hidden_layers": 1, "hidden_size": 16, "num_attention_heads": 2}
QWEN |= {"num_key_value_heads": 1, "intermediate_size": 24}


def images(n: int = 2) -> Tensor:
    return torch.randn((n, *SHAPE), generator=torch.Generator().manual_seed(0))


def vit(**fields: Any) -> nn.Module:
    return initialise(Timm(model=VIT, **fields), SHAPE, 5, seed=0).eval()


def test_only_low_rank_terms_and_the_head_are_in_the_vector() -> None:
    layout = Layout(vit(lora=Lora(rank=4)))
    names = [entry.name for entry in layout.entries]
    assert names[-2:] == ["head.weight", "head.bias"]
    assert all(".lora_A." in name or ".lora_B." in name for name in names[:-2])
    a_block = (192 + 3 * 192) + (192 + 192) + 2 * (192 + 4 * 192)  # inputs and outputs of qkv, proj, fc1 and fc2
    assert layout.parameters == 12 * 4 * a_block + 5 * 193


def test_targets_are_ends_of_names() -> None:
    layout = Layout(vit(lora=Lora(rank=2, targets=("qkv", "blocks.0.attn.proj"))))
    assert layout.parameters == 2 * (12 * 4 * 192 + 2 * 192) + 5 * 193


def test_at_first_it_computes_what_the_model_does_and_a_term_is_scaled_by_alpha_over_r() -> None:
    adapted, plain = vit(lora=Lora(rank=4, alpha=8)), vit()
    x = images()
    torch.testing.assert_close(adapted(x), plain(x), atol=1e-5, rtol=1e-5)
    layer, term = adapted.blocks[0].attn.qkv, images().flatten()[:192][None]
    nn.init.ones_(layer.lora_B["default"].weight)
    low = layer.lora_A["default"](term).sum()
    expected = layer.base_layer(term) + 8 / 4 * low
    torch.testing.assert_close(layer(term), expected, atol=1e-5, rtol=1e-5)


def test_weights_are_loaded_under_the_model_s_own_names(tmp_path: Path) -> None:
    plain = vit()
    torch.save({name: tensor + 0.01 for name, tensor in plain.state_dict().items()}, tmp_path / "vit.pth")
    adapted = vit(lora=Lora(), weights=str(tmp_path / "vit.pth"))
    assert torch.equal(adapted.blocks[3].mlp.fc1.base_layer.weight, plain.blocks[3].mlp.fc1.weight + 0.01)
    assert torch.equal(adapted.norm.bias, plain.norm.bias + 0.01)


@pytest.mark.parametrize("target", ["attn.qvk", "kv", "blocks.0", "norm1", "*.norm?"])
def test_targets_that_can_have_no_adapter_are_refused(target: str) -> None:
    with pytest.raises(ValueError, match=rf"`lora.targets` must match dense, .* got '{re.escape(target)}'; near"):
        vit(lora=Lora(targets=("mlp.fc1", target)))


# --- all models -------------------------------------------------------------------------------------------------------


def adapted(part: ModelPart, shape: tuple[int, ...] = (1, 8, 8)) -> list[str]:
    """The names of the layers with an adapter, and of what is trained whole."""
    names = [entry.name for entry in Layout(initialise(part, shape, 10, seed=0)).entries]
    return list(dict.fromkeys(re.sub(r"\.(lora_.*|weight|bias)$", "", name) for name in names))


@pytest.mark.parametrize(
    ("part", "layers"),
    [
        (MLP(hidden=(16, 16), lora=Lora()), ["hidden1", "hidden2", "head"]),
        (CNN(channels=(8, 8), kernel=3, padding="same", hidden=16, lora=Lora()), ["conv2", "hidden", "head"]),
        (CNN(channels=(8,), kernel=3, hidden=16, lora=Lora(targets=("conv*",))), ["conv1", "head"]),
        (CNN(channels=(8,), kernel=3, hidden=16, lora=Lora(targets=("conv1", "head"))), ["conv1", "head"]),
        (Module(module="toys_lora:Words", lora=Lora()), ["wide", "head"]),
        (Module(module="toys_lora:Words", lora=Lora(targets=("table",))), ["table", "head"]),
        (Module(module="toys_lora:Words", lora=Lora(), head="wide"), ["wide", "head"]),
    ],
)
def test_by_default_all_but_the_first_convolution_and_the_head_is_adapted(part: ModelPart, layers: list[str]) -> None:
    assert adapted(part) == layers


def test_convolutions_in_groups_are_adapted_only_by_name() -> None:
    mobile = {"model": "mobilenetv3_small_050"}
    assert not any("conv_dw" in name for name in adapted(Timm(**mobile, lora=Lora(rank=2)), (3, 32, 32)))
    text = r"`lora.rank` must be a multiple of 16, the groups of .* 'blocks.0.0.conv_dw', got 2; change it, or name"
    with pytest.raises(ValueError, match=text):
        adapted(Timm(**mobile, lora=Lora(rank=2, targets=("conv_dw",))), (3, 32, 32))


def test_weights_that_are_bounded_or_that_torch_takes_without_calling_their_layers_get_no_adapter() -> None:
    assert list(adaptable(nn.TransformerEncoderLayer(8, 2, 16))) == ["linear1", "linear2"]
    assert list(adaptable(nn.Sequential(BoundedLinear(4, 4, 0.5), nn.Linear(4, 2)))) == ["1"]


def test_the_head_of_a_language_model_of_transformers_stays_frozen() -> None:
    from transformers import GPT2Config, GPT2ForSequenceClassification, GPT2LMHeadModel

    tokens = dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"), 0)
    small = GPT2Config(vocab_size=50, n_positions=8, n_embd=16, n_layer=1, n_head=2, num_labels=3, **tokens)
    for kind, head in ((GPT2LMHeadModel, []), (GPT2ForSequenceClassification, ["score.weight"])):
        wrapped = nn.Sequential(kind(small))
        Lora(targets=("c_*", "wte")).adapt(wrapped) if not head else Lora().adapt(wrapped)
        names = [name for name, p in wrapped.named_parameters() if p.requires_grad]
        assert [name[2:] for name in names if ".lora_" not in name] == head
        assert sum("c_attn.lora_A" in name for name in names) == 1


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (MLP(hidden=(16,), lora=Lora(rank=17)), "`lora.rank` must be at most 16, the rank of .* 'hidden1', got 17; l"),
        (MLP(hidden=(), lora=Lora()), "`lora` needs dense or convolutional layers before the head, 'head', and"),
        (MLP(lora=Lora(), frozen=("*lora_a*",)), r"`frozen` must choose .* '\*lora_a\*'; nearest are 'hidden1.lora_"),
        (MLP(lora=Lora(), personal=("*lora_C*",)), r"`personal` '\*lora_C\*' must be .* nearest are 'hidden1.lora_"),
        (MLP(frozen=("hiden1",)), "`frozen` must choose trained parameters by .*, got 'hiden1'; nearest are 'hidden1'"),
    ],
)
def test_ranks_and_patterns_that_fit_nothing_are_refused(part: ModelPart, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Layout(initialise(part, (1, 8, 8), 10, seed=0), part.personal)


# --- what peft and a plain loop compute -------------------------------------------------------------------------------

SMALL = {"data__clients": 3, "data__train_samples": 60, "run__evaluate_every": 1}
ONE_ROUND = {**SMALL, "run__rounds": 1, "world": {"dispatch": {"picks": [[0, 2]]}}, "algorithm": "fedavg"}
STEPS = {"local": {"lr": 0.5, "batch_size": None, "epochs": 2}}


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ({"name": "mlp", "lora": {"rslora": True}}, {"r": 4, "use_rslora": True, "target_modules": "hidden1"}),
        ({"name": "mlp", "lora": {"dora": True}}, {"r": 4, "use_dora": True, "target_modules": "hidden1"}),
        (
            {"name": "cnn", "kernel": 3, "padding": "same", "channels": [4, 8], "lora": {"targets": ["conv?"]}},
            {"r": 4, "target_modules": "conv[12]"},
        ),
        (
            {"name": "module", "module": "toys_lora:Words", "lora": {"alpha": 2.0, "targets": ["table", "wide"]}},
            {"r": 4, "lora_alpha": 2, "target_modules": "table|wide", "fan_in_fan_out": True},
        ),
    ],
    ids=["dense, rslora", "dora", "convolutions", "embedding and Conv1D"],
)
def test_a_round_is_that_of_peft_and_a_plain_loop(simulate: Simulate, model: Raw, settings: Raw) -> None:
    """Two clients take two steps each, and their adapters and heads are averaged by samples."""
    raw = digits(model=model, **ONE_ROUND, **STEPS)
    result, scenario = simulate(raw), parse_scenario(raw)
    federation = federate(scenario.data, scenario.server_data, scenario.seed, scenario.public)
    load = Loader(federation.mean, federation.std, torch.device("cpu"))
    whole = {**model, "lora": None}
    sums: dict[str, Tensor] = {}
    clients = [0, 2]
    for client in clients:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(torch_seed(0, "model"))
            module = parse_scenario({**raw, "model": whole}).model.build((1, 8, 8), 10)
            inject_adapter_in_model(LoraConfig(**{"lora_alpha": 8, **settings}), module)
        module.head.requires_grad_()
        x, y = load(federation.train, federation.train_rows(client))
        trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
        optimiser = torch.optim.SGD(trained.values(), lr=0.5)
        for _ in range(2):
            optimiser.zero_grad()
            nn.functional.cross_entropy(module(x), y).backward()
            optimiser.step()
        share = float(federation.samples[client] / federation.samples[clients].sum())
        sums = {name: sums.get(name, 0) + share * p.detach() for name, p in trained.items()}
    found = result.state_dict()
    assert len(sums) >= 4 and any("lora" in name for name in sums)
    for name, value in sums.items():
        torch.testing.assert_close(found[name], value, atol=1e-6, rtol=0)


# --- which parts are shared, frozen or a client's own -----------------------------------------------------------------

ADAPTED: Raw = {"name": "mlp", "hidden": [16], "lora": {"rank": 2}}
DOWN, UP, HEAD = 2 * 64, 2 * 16, 17 * 10  # numbers in A, in B and in the head


def test_ffa_lora_freezes_a_which_is_the_same_for_all(simulate: Simulate) -> None:
    """Sun, Li, Li, Ding, Improving LoRA in privacy-preserving federated learning, ICLR 2024."""
    result = simulate(digits(model={**ADAPTED, "frozen": ["*lora_A*"]}, **ONE_ROUND, **STEPS))
    assert set(result.pandas("updates").up_bytes.dropna()) == {4 * (UP + HEAD)}
    module, fresh = result.module(), initialise(MLP(hidden=(16,), lora=Lora(rank=2)), (1, 8, 8), 10, seed=0)
    assert torch.equal(module.hidden1.lora_A["default"].weight, fresh.hidden1.lora_A["default"].weight)
    assert module.hidden1.lora_B["default"].weight.any()


def test_fedsa_lora_shares_a_and_keeps_b(simulate: Simulate) -> None:
    """Guo, Zeng, Wang, Fan, Wang, Qu, Selective aggregation for low-rank adaptation, ICLR 2025."""
    own = {**ADAPTED, "personal": ["*lora_B*"]}
    more = {**ONE_ROUND, "algorithm": "fedper", "data__local_test": 0.2, "run__save_clients": True}
    result = simulate(digits(model=own, **more, **STEPS))
    assert set(result.pandas("updates").up_bytes.dropna()) == {4 * (DOWN + HEAD)}
    own_ones = [result.module(client=client).hidden1 for client in (0, 1, 2)]
    first, never, third = (layer.lora_B["default"].weight for layer in own_ones)
    assert not torch.equal(first, third) and not never.any()
    shared = [layer.lora_A["default"].weight for layer in own_ones]
    assert torch.equal(shared[0], shared[1]) and torch.equal(shared[0], shared[2])


# --- the base ---------------------------------------------------------------------------------------------------------


def test_a_base_in_bfloat16_stays_so_and_float32_adapters_train(simulate: Simulate) -> None:
    model = {"name": "module", "module": "toys_lora:Half", "lora": {"targets": ["conv", "hidden"]}}
    result = simulate(digits(model=model, **ONE_ROUND, **STEPS))
    module = result.module()
    kinds = {name: p.dtype for name, p in result.trained()[0].named_parameters()}
    assert {kind for name, kind in kinds.items() if ".lora_" in name or "head" in name} == {torch.float32}
    assert kinds["hidden.base_layer.weight"] == kinds["norm.weight"] == torch.bfloat16
    assert module(images(2)[:, :1, :8, :8]).dtype == torch.float32
    assert module.hidden.lora_B["default"].weight.any() and module.conv.lora_B["default"].weight.any()
    updates = result.pandas("updates").dropna(subset="loss_after")
    assert len(updates) == 2 and (updates.loss_after < updates.loss_before).all()


@pytest.mark.parametrize(
    ("auto", "config", "more"),
    [
        (CausalLM, GPT, {"lora": {}}),  # its head is its embedding
        (CausalLM, QWEN, {"lora": {"targets": ("*_proj",), "merge": True}, "gradient_checkpointing": True}),
        (SequenceClassifier, BERT, {"lora": {}}),
    ],
)
def test_transformers_in_bfloat16_train(auto: Any, config: Raw, more: Raw, tmp_path: Path) -> None:
    ids, classifies = np.random.default_rng(0).integers(1, 20, size=(16, 12)), auto is SequenceClassifier
    arrays = {"input_ids": ids, "y": ids[:, 0] % 3 if classifies else ids}
    classes: Any = {"num_classes": 3 if classifies else 20}
    raw: Raw = {
        "name": "lm",
        "data": divided(
            Arrays.of(arrays, inputs=("input_ids",), task="classes", **classes), clients=2, partition=Iid()
        ),
        "model": auto(config={**config, "vocab_size": 20}, dtype="bfloat16", **more),
        "algorithm": "flora" if "merge" in more["lora"] else "fedavg",
        "local": {"lr": 0.5, "batch_size": None, "epochs": 4},
        "world": {"dispatch": {"per_round": 2}},
        "run": {"rounds": 2},
    }
    result = raysim.run(raw, inline=True, out=tmp_path)
    named = dict(result.module().named_parameters())
    trained = {name: p for name, p in named.items() if p.requires_grad}
    assert {p.dtype for p in trained.values()} == {torch.float32}
    assert {p.dtype for name, p in named.items() if name not in trained} == {torch.bfloat16}
    others = [name.removeprefix("base_model.model.") for name in trained if ".lora_" not in name]
    assert others == ["classifier.weight", "classifier.bias"] * classifies
    updates = result.pandas("updates")
    assert (updates.loss_after < updates.loss_before).all()


def large_tensors(numbers: int) -> dict[int, Tensor]:
    """All tensors of this process with at least so many numbers, by their addresses, which are theirs while they are
    held here."""
    tensors = (one for one in gc.get_objects() if type(one) in (Tensor, nn.Parameter))
    return {one.data_ptr(): one for one in tensors if one.numel() >= numbers}


@pytest.mark.parametrize("clients", [4, 16])
def test_the_base_is_held_once_however_many_clients_a_process_trains(clients: int, tmp_path: Path) -> None:
    width = 997
    raw = digits(model={"name": "mlp", "hidden": [width], "lora": {"rank": 1}}, algorithm="fedavg", **SMALL)
    raw = {**raw, "data": {**raw["data"], "clients": clients}, "world": {"dispatch": {"per_round": clients}}}
    most, before = 0, large_tensors(64 * width)

    class Counting(InlinePool):
        def submit(self, *args: Any, **options: Any) -> Any:
            nonlocal most
            if isinstance(args[1], TrainRequest):
                most = max(most, len(large_tensors(64 * width).keys() - before.keys()))
            return super().submit(*args, **options)

    execute({**raw, "run": {"rounds": 1}, "resources": {"chunk": clients}}, tmp_path, Counting())
    assert most == 1  # that of the worker of clients and server
