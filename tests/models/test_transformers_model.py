"""Models of transformers compute what transformers does, and folders and configurations that do not fit are refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import ROOT, Simulate
from ruamel.yaml import YAML
from torch import Tensor, nn
from torch.nn import functional as F

import raysim
from raysim.data import Arrays, NamedArrays, divided
from raysim.data.federation.partition import Iid
from raysim.local.net import Net
from raysim.models import CausalLM, Lora, SequenceClassifier
from raysim.models.build import initialise
from raysim.parts.errors import BadInput, located
from raysim.parts.rng import generator

transformers = pytest.importorskip("transformers")

GPT = {"model_type": "gpt2", "n_layer": 2, "n_embd": 16, "n_head": 2, "n_positions": 12}
QUIET = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
BERT = {
    "model_type": "distilbert",
    "n_layers": 1,
    "dim": 16,
    "n_heads": 2,
    "hidden_dim": 24,
    "max_position_embeddings": 12,
}
SHAPE: Any = {"input_ids": (12,), "attention_mask": (12,)}
DRAW = generator(0, "transformers")
LENGTHS = DRAW.integers(3, 13, size=40)
MASK = np.arange(12) < LENGTHS[:, None]
KEYS: Any = {"inputs": ("input_ids", "attention_mask"), "task": "classes", "num_classes": 20}
IDS = np.where(MASK, DRAW.integers(1, 20, size=(40, 12)), 0)
NEXT = np.where(np.roll(MASK, -1, 1) & (np.arange(12) < 11), np.roll(IDS, -1, 1), -100)  # the token after each


def net(module: nn.Module) -> Net:
    return Net(module, (), "cross_entropy", torch.device("cpu"), channels_last=False)


def inputs() -> Any:
    return NamedArrays({"input_ids": torch.from_numpy(IDS), "attention_mask": torch.from_numpy(MASK).long()})


def of_transformers(module: nn.Module, auto: str, **given: Any) -> Any:
    """Returns the output of the model as transformers makes and calls it, with the weights of `module`."""
    own = getattr(transformers, auto).from_config(module.config, attn_implementation="eager")
    own.load_state_dict(module.state_dict())
    return own.eval()(**given)


def test_the_loss_is_that_of_transformers_with_masks_and_ignored_labels() -> None:
    module = initialise(CausalLM(config=GPT | QUIET), SHAPE, 20, 0)
    labels = torch.from_numpy(np.where(MASK, IDS, -100))
    expected = of_transformers(module, "AutoModelForCausalLM", **inputs(), labels=labels)
    made = net(module)
    logits = module.eval()(inputs())
    torch.testing.assert_close(logits, expected.logits, rtol=0, atol=1e-6)
    torch.testing.assert_close(made.loss(logits, torch.from_numpy(NEXT)), expected.loss, rtol=0, atol=1e-6)


def test_a_round_is_a_step_of_a_plain_loop_on_tied_weights(tmp_path: Path) -> None:
    arrays = {"input_ids": IDS, "attention_mask": MASK, "y": NEXT}
    data = divided(Arrays.of(arrays, **KEYS), clients=1, partition=Iid())
    raw = {"name": "lm", "data": data, "model": CausalLM(config=GPT | QUIET), "algorithm": "fedavg"}
    raw |= {"local": {"lr": 0.5, "batch_size": None}, "world": {"dispatch": {"per_round": 1}}, "run": {"rounds": 1}}
    result = raysim.run(raw, inline=True, out=tmp_path)
    split = data.load().train
    module = initialise(raw["model"], SHAPE, 20, 0)
    given = {name: torch.from_numpy(array.astype(np.int64)) for name, array in split.x.items()}
    loss = F.cross_entropy(module(**given).flatten(0, 1), torch.from_numpy(split.y).flatten())
    values = dict(module.named_parameters())
    gradients = torch.autograd.grad(loss, list(values.values()))
    trained = result.module()
    assert trained.lm_head.weight is trained.transformer.wte.weight
    for (name, value), gradient in zip(values.items(), gradients, strict=True):
        torch.testing.assert_close(trained.get_parameter(name), value - 0.5 * gradient, rtol=0, atol=1e-6)


def test_a_seed_decides_the_weights_and_classifiers_do_not_see_padding() -> None:
    part = SequenceClassifier(config=BERT | {"vocab_size": 20, "dropout": 0.0, "seq_classif_dropout": 0.0})
    module, again, other = (initialise(part, SHAPE, 3, seed) for seed in (0, 0, 1))
    assert all(torch.equal(one, two) for one, two in zip(module.parameters(), again.parameters(), strict=True))
    assert not torch.equal(module.classifier.weight, other.classifier.weight)
    whole = module.eval()(inputs())
    assert whole.shape == (40, 3)
    one = int(LENGTHS.argmin())
    cut = {name: values[one : one + 1, : LENGTHS[one]] for name, values in inputs().items()}
    torch.testing.assert_close(module(**cut), whole[one : one + 1], rtol=0, atol=1e-6)


def test_a_classifier_by_the_last_token_takes_no_padding_for_it_whatever_the_data_pad_with(folder: Path) -> None:
    module = initialise(SequenceClassifier(path=str(folder)), SHAPE, 3, 0).eval()
    module.score.weight.data.normal_()
    assert module.config.pad_token_id == 0
    whole, odd = inputs(), IDS + 7 * (1 - MASK)
    other = NamedArrays({"input_ids": torch.from_numpy(odd), "attention_mask": whole["attention_mask"]})
    torch.testing.assert_close(module(other), module(whole), rtol=0, atol=1e-6)


def gradient(part: Any) -> tuple[Tensor, ...]:
    """With dropout, from the same seed."""
    made = net(initialise(part, SHAPE, 20, 0))
    made.mode(training=True)
    made.seed(3)
    return tuple(made.gradients(inputs(), torch.from_numpy(NEXT), made.parameters)[1])


def test_gradient_checkpointing_changes_no_gradient() -> None:
    plain, spared = gradient(CausalLM(config=GPT)), gradient(CausalLM(config=GPT, gradient_checkpointing=True))
    for one, two in zip(plain, spared, strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=1e-7)


def test_half_precision_is_for_frozen_weights() -> None:
    (problem,) = CausalLM(config=GPT, dtype="bfloat16").problems()
    assert problem.path == "model.dtype" and "must be float32 where all weights are trained" in problem.text
    made = net(initialise(CausalLM(config=GPT, dtype="bfloat16", lora=Lora(rank=2)), SHAPE, 20, 0))
    kinds = {parameter.dtype: parameter.requires_grad for parameter in made.module.parameters()}
    assert kinds == {torch.bfloat16: False, torch.float32: True}
    loss, gradients = made.gradients(inputs(), torch.from_numpy(NEXT), made.parameters)
    assert loss.dtype == torch.float32 and any(gradient.abs().max() > 0 for gradient in gradients)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("base")
    config = transformers.AutoConfig.for_model(
        **GPT | QUIET, vocab_size=24, pad_token_id=0, bos_token_id=None, eos_token_id=None
    )
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(path)
    return path


def test_a_folder_gives_its_weights_and_a_head_starts_at_random(folder: Path) -> None:
    module = initialise(CausalLM(path=str(folder)), (12,), 20, 0)
    own = transformers.AutoModelForCausalLM.from_pretrained(folder)
    assert all(torch.equal(one, two) for one, two in zip(module.parameters(), own.parameters(), strict=True))
    assert module(torch.from_numpy(IDS)).shape == (40, 12, 24)  # a wider vocabulary than the data's
    classifier = initialise(SequenceClassifier(path=str(folder)), SHAPE, 3, 0)
    assert torch.equal(classifier.transformer.wte.weight, own.transformer.wte.weight)
    assert classifier(inputs()).shape == (40, 3)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux")
def test_a_frozen_base_in_the_type_of_its_file_is_mapped_which_all_processes_of_a_node_share(tmp_path: Path) -> None:
    config = transformers.AutoConfig.for_model(**GPT | {"vocab_size": 20000, "pad_token_id": 0})
    made = transformers.AutoModelForCausalLM.from_config(config).bfloat16()
    made.save_pretrained(tmp_path)
    half = initialise(CausalLM(path=str(tmp_path), dtype="bfloat16", lora=Lora(rank=2)), (12,), 20, 0)
    (mapped,) = (line for line in Path("/proc/self/maps").read_text().splitlines() if str(tmp_path) in line)
    start, end = (int(one, 16) for one in mapped.split()[0].split("-"))
    frozen = [parameter for parameter in half.parameters() if not parameter.requires_grad]
    assert frozen and all(start <= parameter.data_ptr() < end for parameter in frozen)
    whole = initialise(CausalLM(path=str(tmp_path), lora=Lora(rank=2)), (12,), 20, 0)
    assert {parameter.dtype for parameter in whole.parameters()} == {torch.float32}
    assert torch.equal(whole.transformer.wte.weight, made.transformer.wte.weight.float())
    assert whole(torch.from_numpy(IDS)).isfinite().all()


@pytest.mark.parametrize(
    ("keys", "shape", "text"),
    [
        ({"config": GPT}, (13,), "model.config: must have a position for each of 13 tokens of a sequence, got 12"),
        ({"config": GPT | {"vocab_size": 9}}, (12,), "model.config: must embed each of the 20 tokens of the data, got"),
        ({"config": GPT | {"n_layers": 2}}, (12,), "model.config: must have keys of GPT2Config, got 'n_layers'"),
        ({"config": {"model_type": "gtp2"}}, (12,), "model.config: must give a causal_lm of transformers, got"),
        ({"config": GPT}, (3, 8, 8), r"inputs must be tokens \(length,\), or named arrays with `input_ids`"),
        ({"path": "nowhere"}, (12,), r"model.path: must be a local folder with config.json and \*.safetensors, got"),
    ],
)
def test_what_does_not_fit_is_refused(keys: Any, shape: Any, text: str) -> None:
    with pytest.raises(BadInput, match=text), located("model"):
        initialise(CausalLM(**keys), shape, 20, 0)


def test_a_folder_without_weights_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text((folder / "config.json").read_text())
    with pytest.raises(BadInput, match=r"which has no \*.safetensors; save the model there"), located("model"):
        initialise(CausalLM(path=str(tmp_path)), (12,), 20, 0)
    (tmp_path / "model.safetensors").write_bytes(b"{}")
    quantised = json.loads((folder / "config.json").read_text()) | {"quantization_config": {"load_in_4bit": True}}
    (tmp_path / "config.json").write_text(json.dumps(quantised))
    with pytest.raises(BadInput, match="must hold no weights of fewer bits; save them in bfloat16"), located("model"):
        initialise(CausalLM(path=str(tmp_path)), (12,), 20, 0)
    (tmp_path / "config.json").write_text((folder / "config.json").read_text())
    with pytest.raises(BadInput, match="must give a causal_lm of transformers, got"), located("model"):
        initialise(CausalLM(path=str(tmp_path)), (12,), 20, 0)


def shipped(name: str) -> Any:
    return YAML(typ="safe").load(ROOT / "scenarios" / f"{name}.yaml")


def test_the_shipped_classifier_of_sentiment_takes_rows_like_those_of_sst_2(
    simulate: Simulate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data" / "sst2").mkdir(parents=True)
    for file, rows in (("train", 80), ("dev", 20)):
        lines = [
            json.dumps({"sentence": f"a {('dull', 'fine')[at % 2]} film {at}", "label": at % 2}) for at in range(rows)
        ]
        (tmp_path / "data" / "sst2" / f"{file}.jsonl").write_text("\n".join(lines))
    raw = shipped("text_sentiment")
    raw["data"] |= {"tokenizer": "bytes", "clients": 4}
    raw["model"]["config"] = BERT | {"vocab_size": 260, "max_position_embeddings": 64}
    raw["world"]["dispatch"]["per_round"] = 2
    result = simulate(raw, "--set", "run.rounds=2")
    assert {"loss", "accuracy", "f1"} == {*result.table("evaluations")["metric"].to_pylist()}


def test_the_shipped_tuning_trains_adapters_alone_on_a_base_in_half_precision(
    simulate: Simulate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    base = tmp_path / "models" / "base"
    letters = ["<|endoftext|>", *"abcdefghijklmnopqrstuvwxyzAI:.", "\u0120", "\u010a"]  # a space, and a line's end
    tokenizer = transformers.Qwen2TokenizerFast(vocab={one: at for at, one in enumerate(letters)}, merges=[])
    tokenizer.save_pretrained(base)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.AutoConfig.for_model("qwen2", vocab_size=40, num_key_value_heads=1, pad_token_id=0, **sizes)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(base)
    colours = [("red", "blue")[at % 2] for at in range(60)]
    lines = [json.dumps({"instruction": f"say {one}", "answer": one, "category": one}) for one in colours]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "instructions.jsonl").write_text("\n".join(lines))
    raw = shipped("text_instructions")
    raw["data"] |= {"clients": 2, "partition": "iid"}
    raw["world"]["dispatch"]["per_round"] = 2
    result = simulate(raw, "--set", "run.rounds=2")
    trained = {
        name: parameter.dtype for name, parameter in result.module().named_parameters() if parameter.requires_grad
    }
    assert trained and all(".lora_" in name and kind == torch.float32 for name, kind in trained.items())
    ups = [parameter for name, parameter in result.module().named_parameters() if ".lora_B." in name]
    assert len(ups) == 2 and all(up.any() for up in ups)  # they were zero
