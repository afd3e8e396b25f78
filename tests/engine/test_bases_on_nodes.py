"""Bases of models come to the nodes that do not have them."""

import json
from pathlib import Path

import pytest
import transformers
from conftest import override
from nodes import several_nodes
from waiting import PATIENT_S

import raysim

GPT = {
    "model_type": "gpt2",
    "n_layer": 1,
    "n_head": 2,
    "n_embd": 16,
    "n_positions": 16,
    "vocab_size": 280,
    "bos_token_id": None,
    "eos_token_id": None,
}
RAW = {
    "name": "lines",
    "data": {
        "name": "text",
        "path": "lines.jsonl",
        "tokenizer": "bytes",
        "length": 16,
        "clients": 4,
        "partition": "iid",
    },
    "model": {"name": "causal_lm", "path": "~/base", "lora": {"rank": 2}, "dtype": "bfloat16"},
    "algorithm": {"name": "fedbuff", "buffer": 2},
    "local": {"optimizer": "adam", "lr": 0.01, "batch_size": 4},
    "world": {"dispatch": {"per_round": 2}},
    "run": {"rounds": 2},
    "resources": {
        "client_actors": 2,
        "clients_on": {"labels": {"disk": "empty"}},
        "aggregators_on": {"labels": {"disk": "empty"}},
    },
}


@pytest.mark.cluster
def test_a_base_comes_to_a_node_that_lacks_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    monkeypatch.setenv("HOME", str(home))
    lines = tmp_path / "lines.jsonl"
    lines.write_text("".join(json.dumps({"text": f"line {at} of many"}) + "\n" for at in range(40)))
    base = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(**GPT)).bfloat16()
    base.save_pretrained(home / "base")
    raw = override(RAW, data__path=str(lines))
    here = raysim.run(raw, out=tmp_path / "inline", inline=True)
    with several_nodes(1, num_gpus=0) as nodes:
        nodes.add(2, labels={"disk": "empty"}, env_vars={"HOME": str(other), "RAYSIM_CACHE": str(other)})
        process = nodes.start(tmp_path, raw)
        printed = process.communicate(timeout=PATIENT_S)[0]
        assert process.returncode == 0, printed
    (done,) = (tmp_path / "runs").iterdir()
    assert raysim.Result(done).digest == here.digest
    (copy,) = other.glob("models/*/base/model.safetensors")
    assert copy.read_bytes() == (home / "base" / "model.safetensors").read_bytes()
