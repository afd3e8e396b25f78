"""A model that was trained opens in the library that it is from, in a process without raysim, with equal outputs."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from command_line import command
from conftest import Raw, digits
from own_modules import Net
from safetensors.torch import load_file
from torch import Tensor, nn

import raysim
from raysim.data import Arrays
from raysim.parts.errors import BadValue

QUIET = {"attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0}
GPT = {"model_type": "gpt2", "n_layer": 1, "n_head": 2, "n_embd": 16, "n_positions": 64, **QUIET}
LLAMA = {"model_type": "llama", "num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 16}
LLAMA |= {"intermediate_size": 32, "max_position_embeddings": 64}
BERT = {"model_type": "distilbert", "n_layers": 1, "n_heads": 2, "dim": 16, "hidden_dim": 32, "vocab_size": 260}
LORA = {"rank": 2, "alpha": 4}
TOKENS = torch.arange(4, 24)[None]
TRAIN: Raw = {"algorithm": "fedavg", "local": {"lr": 0.1, "batch_size": 16}, "world": {"dispatch": {"per_round": 4}}}


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("lines") / "lines.jsonl"
    rows = [{"text": ("to be or not to be", "the rest is silence")[at % 2], "who": f"a{at % 4}"} for at in range(60)]
    file.write_text("\n".join(map(json.dumps, rows)))
    return file


def of_texts(lines: Path, out: Path, model: Raw, **data: Any) -> raysim.Result:
    keys = {"name": "text", "path": str(lines), "length": 24, "clients": "who"}
    local = {"optimizer": "adam", "lr": 0.03, "batch_size": 8}
    raw = digits() | TRAIN | {"data": keys | data, "model": model, "local": local, "run": {"rounds": 2}}
    return raysim.run(raw, inline=True, out=out)


def of_images(out: Path, model: Any) -> raysim.Result:
    raw = digits(data__clients=4) | TRAIN | {"model": model, "run": {"rounds": 2}}
    return raysim.run(raw, inline=True, out=out)


def alone(code: str, where: Path, inputs: Tensor) -> Tensor:
    """Runs code in a new process that cannot import raysim. It has `torch` and `x`, and sets `y`."""
    torch.save(inputs, where / "x.pt")
    first = "import sys; sys.modules['raysim'] = None\nimport torch; x = torch.load('x.pt')\n"
    first += "torch.set_grad_enabled(False)\n"
    last = "\ntorch.save(y, 'y.pt')"
    done = subprocess.run(
        [sys.executable, "-c", first + code + last], cwd=where, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "newly initialized" not in done.stderr and "MISSING" not in done.stderr, done.stderr
    found: Tensor = torch.load(where / "y.pt")
    return found


def same(found: Tensor, expected: Any) -> None:
    torch.testing.assert_close(found, torch.as_tensor(expected), rtol=1e-4, atol=1e-5)


def outputs(result: raysim.Result, x: Tensor) -> Tensor:
    """Returns what the model gives as raysim has it."""
    with torch.no_grad():
        found: Tensor = result.trained()[0](x)
    return found


LOAD = "from transformers import AutoModelForCausalLM\ny = AutoModelForCausalLM.from_pretrained('{}').eval()(x).logits"


@pytest.mark.slow
@pytest.mark.parametrize("model", [GPT, LLAMA], ids=lambda config: config["model_type"])
@pytest.mark.parametrize("lora", [None, LORA], ids=["whole", "lora"])
def test_a_language_model_opens_in_transformers_and_its_adapters_in_peft(
    model: Raw, lora: Raw | None, lines: Path, tmp_path: Path
) -> None:
    result = of_texts(lines, tmp_path / "o", {"name": "causal_lm", "config": model, "lora": lora})
    expected = outputs(result, TOKENS)
    module = result.module()
    module.save_pretrained(tmp_path / "saved")
    same(alone(LOAD.format("saved"), tmp_path, TOKENS), expected)
    result.export("hf", tmp_path / "hf")
    same(alone(LOAD.format("hf"), tmp_path, TOKENS), expected)
    tokens = "from transformers import AutoTokenizer\nmade = AutoTokenizer.from_pretrained('hf')\n"
    ids = alone(tokens + "y = torch.tensor(made('to be <end> or \u00e9')['input_ids'])", tmp_path, TOKENS)
    assert ids.tolist() == [byte + 4 for byte in "to be <end> or \u00e9".encode()]
    if lora is None:
        with pytest.raises(BadValue, match="must be hf or safetensors"):
            result.export("peft", tmp_path / "peft")
        return
    result.export("peft", tmp_path / "peft")
    assert not (tmp_path / "peft" / "README.md").exists()  # a form of peft's to be filled in
    base = "from transformers import AutoModelForCausalLM\nfrom peft import PeftModel\n"
    base += "base = AutoModelForCausalLM.from_pretrained('peft/base')\nbefore = base(x).logits\n"
    code = base + "y = PeftModel.from_pretrained(base, 'peft').eval()(x).logits\nassert not torch.allclose(before, y)"
    same(alone(code, tmp_path, TOKENS), expected)
    auto = "from peft import AutoPeftModelForCausalLM as A\ny = A.from_pretrained('peft').eval()(x).logits"
    same(alone(auto, tmp_path, TOKENS), expected)
    with torch.no_grad():
        same(module.merge_and_unload()(TOKENS).logits, expected)


def test_a_model_has_its_librarys_own_forward_pass_and_generates(lines: Path, tmp_path: Path) -> None:
    before = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_info()
    try:
        result = of_texts(lines, tmp_path, {"name": "causal_lm", "config": GPT, "lora": LORA})
        module = result.module()
        assert transformers.logging.get_verbosity() == transformers.logging.INFO
    finally:
        transformers.logging.set_verbosity(before)
    with torch.no_grad():
        assert module(TOKENS).logits.equal(outputs(result, TOKENS))
    prompt = torch.tensor([[byte + 4 for byte in b"to be"]])
    ids = module.generate(input_ids=prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=8, do_sample=False)
    known = transformers.AutoTokenizer.from_pretrained(result.folder / "tokenizer")
    assert known.decode(ids[0], skip_special_tokens=True).startswith("to be")


@pytest.mark.slow
def test_a_classifier_of_texts_keeps_its_head_beside_adapters(lines: Path, tmp_path: Path) -> None:
    model = {"name": "sequence_classifier", "config": BERT, "lora": LORA}
    result = of_texts(lines, tmp_path / "o", model, task="classify", label="who", tokenizer="characters")
    expected = result.predict(["to be or not", "silence"], outputs=True)
    result.export("peft", tmp_path / "peft")
    result.export("hf", tmp_path / "hf")
    code = "from transformers import AutoTokenizer, AutoModelForSequenceClassification as A\n"
    code += "x = AutoTokenizer.from_pretrained('hf')(['to be or not', 'silence'], padding=True, return_tensors='pt')\n"
    code += "x = {name: x[name] for name in ('input_ids', 'attention_mask')}\n"
    same(alone(code + "y = A.from_pretrained('hf').eval()(**x).logits", tmp_path, TOKENS), expected)
    code += "from peft import PeftModel\nbase = A.from_pretrained('peft/base', num_labels=4)\n"
    same(alone(code + "y = PeftModel.from_pretrained(base, 'peft').eval()(**x).logits", tmp_path, TOKENS), expected)


OWN = {"name": "module", "module": "own_modules:Net"}
IMAGES = torch.rand(3, 1, 8, 8, generator=torch.Generator().manual_seed(0))
OF_TIMM = "import timm\nbase = timm.create_model('resnet10t', num_classes=10)\n"
OF_TORCHVISION = "from torchvision.models import resnet18\nbase = resnet18(num_classes=10)\n"
FILLED = "from safetensors.torch import load_file\nbase.load_state_dict(load_file('{}/model.safetensors'))\n"


@pytest.mark.slow
@pytest.mark.parametrize("lora", [None, LORA], ids=["whole", "lora"])
@pytest.mark.parametrize(
    ("model", "made"),
    [({"name": "timm", "model": "resnet10t"}, OF_TIMM), ({"name": "torchvision", "model": "resnet18"}, OF_TORCHVISION)],
    ids=["timm", "torchvision"],
)
def test_image_classifiers_open_in_their_libraries(model: Raw, made: str, lora: Raw | None, tmp_path: Path) -> None:
    result = of_images(tmp_path / "o", {**model, "lora": lora, "image_size": 32})
    x = nn.functional.interpolate(IMAGES, (32, 32), mode="bilinear", antialias=True).expand(-1, 3, -1, -1)
    expected = outputs(result, IMAGES)
    result.export("safetensors", tmp_path / "st")
    same(alone(made + FILLED.format("st") + "y = base.eval()(x)", tmp_path, x), expected)
    if lora:
        result.export("peft", tmp_path / "peft")
        code = made + FILLED.format("peft/base") + "from peft import PeftModel\nbefore = base.eval()(x)\n"
        code += "y = PeftModel.from_pretrained(base, 'peft').eval()(x)\nassert not torch.allclose(before, y)"
        same(alone(code, tmp_path, x), expected)


@pytest.mark.parametrize("lora", [None, LORA], ids=["whole", "lora"])
def test_an_own_module_is_filled_with_its_state_dict(lora: Raw | None, tmp_path: Path) -> None:
    result = of_images(tmp_path / "o", {**OWN, "lora": lora})
    folder = result.export("safetensors")
    assert folder == result.folder / "safetensors"
    plain = Net((1, 8, 8), 10).eval()
    plain.load_state_dict(load_file(folder / "model.safetensors"))
    with torch.no_grad():
        same(plain(IMAGES), outputs(result, IMAGES))
    described = json.loads((folder / "inputs.json").read_text())["inputs"]
    assert described["mean"] == result.info["data"]["inputs"]["mean"]


X = np.random.default_rng(0).normal([5, 100, -3], [1, 50, 0.1], (60, 3)).astype(np.float32)


@pytest.mark.parametrize("to", ["torch-export", pytest.param("onnx", marks=pytest.mark.slow)])
def test_a_program_takes_unscaled_inputs_in_batches_of_any_size(to: str, tmp_path: Path) -> None:
    data = Arrays.of({"x": X, "y": X[:, 0] * X[:, 1]}, task="regression", clients=4, partition="iid")
    raw = digits(model={"name": "mlp", "hidden": [8]}) | TRAIN | {"data": data, "run": {"rounds": 2}}
    result = raysim.run(raw, inline=True, out=tmp_path / "o")
    result.export(to, tmp_path / to)
    code = "of = torch.export.load('torch-export/model.pt2').module()\n"
    if to == "onnx":
        pytest.importorskip("onnxscript")
        code = "from onnx.reference import ReferenceEvaluator as R\nmade = R('onnx/model.onnx')\n"
        code += "of = lambda x: torch.tensor(made.run(None, {made.input_names[0]: x.numpy()})[0])\n"
        (inputs,) = pytest.importorskip("onnx").load(tmp_path / "onnx" / "model.onnx").graph.input
        assert inputs.type.tensor_type.shape.dim[0].dim_param == "batch"
    expected = result.predict(X, outputs=True)
    same(
        alone(code + "y = torch.cat([of(x[:1]), of(x)])", tmp_path, torch.from_numpy(X)),
        np.concatenate([expected[:1], expected]),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", [OWN, {"name": "timm", "model": "resnet10t", "image_size": 32, "lora": LORA}], ids=str
)
def test_a_program_takes_images_of_bytes(model: Any, tmp_path: Path) -> None:
    result = of_images(tmp_path / "o", model)
    x = torch.randint(256, (5, 1, 8, 8), dtype=torch.uint8)
    result.export("torch-export", tmp_path)
    same(
        alone("y = torch.export.load('model.pt2').module()(x)", tmp_path, x),
        result.predict(x.permute(0, 2, 3, 1), outputs=True),
    )


@pytest.mark.filterwarnings("ignore:The given buffer is not writable")  # torch.export.load of torch 2.11
@pytest.mark.parametrize("to", ["torch-export", pytest.param("onnx", marks=pytest.mark.slow)])
def test_a_shallow_model_is_a_program_that_ends_at_its_exit(to: str, tmp_path: Path) -> None:
    cnn = {"name": "cnn", "channels": [4, 6], "kernel": 3, "padding": "same", "hidden": 8}
    more = {"algorithm": {"name": "depthfl", "exits": 2}, "capacity": {"levels": [1.0, 0.5]}, "run": {"rounds": 2}}
    result = raysim.run(digits(model=cnn, **more), inline=True, out=tmp_path / "o")
    answer = command("export", result.folder, "--to", to, "--level", "0.5", "--out", tmp_path)
    assert answer.exit_code == 0, answer.output
    x = torch.randint(17, (5, 1, 8, 8), dtype=torch.uint8)
    if to == "onnx":
        reference = pytest.importorskip("onnx.reference")
        found = reference.ReferenceEvaluator(str(tmp_path / "model.onnx")).run(None, {"x": x.numpy()})[0]
    else:
        found = torch.export.load(tmp_path / "model.pt2").module()(x).detach()
    same(torch.as_tensor(found), result.predict(x.permute(0, 2, 3, 1), outputs=True, level=0.5))


def test_what_cannot_be_written_so_says_what_can(tmp_path: Path) -> None:
    result = of_images(tmp_path / "o", "linear")
    for to, text in (
        ("hf", "must be safetensors for linear"),
        ("peft", "without model.lora"),
        ("pt", "must be one of"),
    ):
        with pytest.raises(BadValue, match=text):
            result.export(to, tmp_path / to)
