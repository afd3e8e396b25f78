"""Low-rank adaptation: what is trained, what travels, and what a finished run gives back."""

from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import Simulate, digits
from torch import Tensor, nn

from raysim.models import Lora, Timm
from raysim.models.build import initialise
from raysim.models.layout import Layout

VIT = "vit_tiny_patch16_224"  # 12 blocks of width 192
SHAPE = (3, 32, 32)


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
    adapted, plain = vit(lora=Lora(rank=4, scale=8)), vit()
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


@pytest.mark.parametrize("target", ["attn.qvk", "kv", "blocks.0", "norm1"])
def test_targets_that_are_no_linear_layers_are_refused(target: str) -> None:
    with pytest.raises(ValueError, match=rf"`lora.targets` must be linear layers .* got '{target}'; nearest are"):
        vit(lora=Lora(targets=("mlp.fc1", target)))


def test_a_run_sends_low_rank_terms_and_its_model_has_the_frozen_rest(simulate: Simulate) -> None:
    model = {"name": "timm", "model": VIT, "image_size": 32, "lora": {"rank": 2, "targets": ["attn.qkv"]}}
    small = {"run__rounds": 1, "run__evaluate_every": 1, "data__clients": 40, "world": {"dispatch": {"per_round": 2}}}
    result = simulate(digits(model=model, algorithm="fedavg", **small))
    size = 12 * 2 * 4 * 192 + 10 * 193
    assert len(result.vectors()["w"]) == size
    updates = result.table("updates")
    assert set(updates["up_bytes"].drop_null().to_pylist()) == {4 * size}
    same = Timm(model=VIT, image_size=32, lora=Lora(rank=2, targets=("attn.qkv",)))
    module, fresh = result.module(), initialise(same, (1, 8, 8), 10, seed=0)
    trained, frozen = module.blocks[0].attn.qkv, fresh.blocks[0].attn.qkv
    assert torch.equal(trained.base_layer.weight, frozen.base_layer.weight)
    assert torch.equal(module.norm.weight, fresh.norm.weight)
    assert trained.lora_B["default"].weight.any() and not frozen.lora_B["default"].weight.any()
    assert not torch.equal(module.head.weight, fresh.head.weight)
