"""Frozen bases in 8 and 4 bits: what they compute, that adapters train on them, and where they are refused."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test_transformers_model import GPT, IDS, KEYS, MASK, NEXT, QUIET, SHAPE, inputs, net

import raysim
from raysim.data import Arrays, divided
from raysim.data.federation.partition import Iid
from raysim.models import CausalLM, Lora
from raysim.models.build import initialise
from raysim.parts.errors import BadInput, located

LLAMA = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
LLAMA |= {"intermediate_size": 96}
GPT2 = GPT | QUIET | {"n_embd": 64}  # of layers whose weights are transposed


def model(config: Any, dtype: Any) -> CausalLM:
    return CausalLM(config=config, dtype=dtype, lora=Lora(rank=2))


@pytest.mark.parametrize(("config", "dtype", "bits"), [(LLAMA, "int8", 8), (GPT2, "nf4", 4)], ids=["int8", "nf4"])
def test_a_quantised_base_computes_nearly_the_same_also_after_it_was_evaluated(
    config: Any, dtype: Any, bits: int
) -> None:
    pytest.importorskip("bitsandbytes")
    exact, made = (net(initialise(model(config, kind), SHAPE, 20, 0)) for kind in ("float32", dtype))
    kinds = {parameter.dtype for parameter in made.module.parameters() if parameter.requires_grad}
    assert kinds == {torch.float32} and exact.module.lm_head.weight.shape == made.module.lm_head.weight.shape
    body = sum(p.numel() for n, p in exact.module.named_parameters() if ".base_layer.weight" in n)
    held = sum(p.numel() for n, p in made.module.named_parameters() if ".base_layer.weight" in n)
    assert body == held * 8 // bits
    labels, found = torch.from_numpy(NEXT), []
    for one in (exact, made):
        one.w.add_(0.01)  # up-projections start at zero, and no gradient would pass
        one.mode(training=True)
        found.append([gradient.clone() for gradient in one.gradients(inputs(), labels, one.parameters)[1]])
    whole, near = (torch.cat([gradient.flatten() for gradient in some]) for some in found)
    assert torch.cosine_similarity(whole, near, dim=0) > 0.95
    with made.evaluating(made.model()) as module:
        module(inputs())
    made.mode(training=True)
    again = made.gradients(inputs(), labels, made.parameters)[1]
    assert all(torch.equal(one, two) for one, two in zip(again, found[1], strict=True))


@pytest.mark.parametrize("dtype", ["int8", "nf4"])
def test_adapters_train_on_a_quantised_base(dtype: Any, tmp_path: Path) -> None:
    pytest.importorskip("bitsandbytes")
    arrays = {"input_ids": IDS, "attention_mask": MASK, "y": NEXT}
    raw: Any = {
        "name": "quantised",
        "data": divided(Arrays.of(arrays, **KEYS), clients=2, partition=Iid()),
        "model": model(LLAMA, dtype),
        "algorithm": "fedavg",
        "local": {"lr": 0.5, "batch_size": 8, "epochs": 4},
        "world": {"dispatch": {"per_round": 2}},
        "run": {"rounds": 2},
    }
    result = raysim.run(raw, inline=True, out=tmp_path)
    updates = result.pandas("updates")
    assert (updates.loss_after < updates.loss_before).all()
    assert np.isfinite(result.vectors()["w"]).all() and result.module()(**inputs()).logits.shape == (40, 12, 20)


def test_quantised_bases_are_refused_without_the_library_and_where_weights_would_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    with (
        pytest.raises(BadInput, match=r"model.dtype: .* got nf4; pip install 'raysim-fl\[quantised\]'"),
        located("model"),
    ):
        initialise(model(LLAMA, "nf4"), SHAPE, 20, 0)
    for part in (CausalLM(config=GPT, dtype="int8"), CausalLM(config=GPT, dtype="int8", lora=Lora(merge=True))):
        (problem,) = part.problems()
        assert problem.path == "model.dtype" and "unless lora is set, and its merge is not, got int8" in problem.text
