"""What README says in Python is run, on the runs that it says were made."""

import re
from pathlib import Path
from typing import Any

import pytest
from command_line import command
from conftest import ROOT


def test_the_questions_are_answered_alike_in_sql_and_in_pandas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    pytest.importorskip("duckdb")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (asked,) = (block for block in blocks if "import duckdb" in block)
    monkeypatch.chdir(tmp_path)
    scenario, grid = ROOT / "scenarios" / "quickstart.yaml", ["algorithm=fedavg,fedbuff", "world.delay.sigma=5,20"]
    words = ["sweep", str(scenario), "--inline", "--seeds", "0,1", "--set", "run.rounds=20"]
    answer = command(*words, "--set", grid[0], "--set", grid[1])
    assert "8 runs: 8 finished" in answer.stdout
    capsys.readouterr()
    exec(asked, {})
    printed = capsys.readouterr().out
    assert printed.count("fedbuff") >= 3
    numbers = [float(number) for number in re.findall(r"\b0\.\d{6,}", printed)]
    assert len(numbers) > 20
    assert len({round(number, 5) for number in numbers}) <= len(numbers) / 2 + 3  # each by SQL and by pandas
