"""A tuning of adapters on a base in a folder has the same bits on any number of workers, and after it was killed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import transformers
from command_line import command
from conftest import PYTHONPATH, Raw
from ruamel.yaml import YAML
from same_bits import same_on_ray
from waiting import until

import raysim

GPT = {"model_type": "gpt2", "n_layer": 1, "n_embd": 16, "n_head": 2, "n_positions": 32, "vocab_size": 260}


@pytest.fixture
def tuning(tmp_path: Path) -> Raw:
    """FedBuff tunes adapters on a base in bfloat16, with dropout, by what authors have answered."""
    config = transformers.AutoConfig.for_model(**GPT, pad_token_id=0, bos_token_id=None, eos_token_id=None)
    transformers.AutoModelForCausalLM.from_config(config).bfloat16().save_pretrained(tmp_path / "base")
    rows = [{"ask": f"how is {at}", "answer": ("fine", "not so fine")[at % 2], "who": f"w{at % 4}"} for at in range(40)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = {"name": "text", "path": str(tmp_path / "rows.jsonl"), "prompt": "{ask}? ", "answer": "answer", "length": 32}
    model = {"name": "causal_lm", "path": str(tmp_path / "base"), "dtype": "bfloat16"}
    return {
        "name": "tuning",
        "data": {**data, "client": "who", "clients": 4, "partition": "natural"},
        "model": model | {"lora": {"rank": 2, "dropout": 0.1}},
        "algorithm": {"name": "fedbuff", "buffer": 2},
        "local": {"optimizer": "adam", "lr": 1.0e-2, "batch_size": 4},
        "world": {"dispatch": {"concurrency": 3}, "delay": {"name": "half_normal", "sigma": 2}},
        "run": {"rounds": 40, "evaluate_every": 10, "metrics": ["perplexity"], "checkpoint": {"every_rounds": 4}},
    }


def run(raw: Raw, out: Path, **options: Any) -> raysim.Result:
    return raysim.run(raysim.parse_scenario(raw), out=out, progress=False, **options)


@pytest.mark.chaos
def test_a_killed_tuning_goes_on_to_the_bits_of_one_that_nothing_disturbed(tuning: Raw, tmp_path: Path) -> None:
    YAML().dump(tuning, tmp_path / "tuning.yaml")
    out = tmp_path / "killed"
    line = [sys.executable, "-m", "raysim", "run", str(tmp_path / "tuning.yaml"), "--local", "2", "--out", str(out)]
    environment = os.environ | {"PYTHONPATH": PYTHONPATH}
    process = subprocess.Popen(line, env=environment, start_new_session=True, stdout=subprocess.DEVNULL)
    until(lambda: any(out.glob("*/checkpoint/*.json")), process)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -9
    (folder,) = out.iterdir()
    assert len(raysim.Result(folder).table("steps")) < 40
    assert command("resume", str(folder), "--local", "1").exit_code == 0
    resumed = raysim.Result(folder)
    assert resumed.digest == run(tuning, tmp_path / "whole", inline=True).digest
    values = resumed.pandas("evaluations").query("metric == 'perplexity' and split == 'test'").value
    assert values.iloc[-1] < values.iloc[0]


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_a_tuning_has_the_same_bits_on_two_actors(tuning: Raw, tmp_path: Path) -> None:
    tuning["run"]["rounds"] = 6
    same_on_ray(tuning, tmp_path)
