"""Damages the folders of runs at random: every command must then work, or say in a line what is wrong, and soon.

    python benchmarks/fuzz_folders.py --count 300

A quickstart is stopped halfway. One or two files of a copy of its folder are cut, emptied, removed, filled with noise
or with another file's content, replaced by a folder, or have one bit flipped; in JSON files a key gets another value.
Then `show`, `compare`, `report` and `resume` run, each in a process of its own. A command fails the check if it ends in
a traceback or a signal, takes over five seconds, or if `resume` ends well with other rows than those of an undamaged
run. It needs the packages of `raysim-fl[dev]`. Prints a line for each failure, whose folder stays in `--keep`, and
counts; the exit code is then 1.
"""

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from damages import damage  # noqa: E402
from stopping import stop_after  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

import raysim  # noqa: E402
from raysim.cli.app import app  # noqa: E402
from raysim.parts.errors import RaysimError  # noqa: E402
from results import CannotWrite, NotARun  # noqa: E402

SECONDS = 5.0
SAID = (SystemExit, RaysimError, NotARun, CannotWrite)  # each is a line of its own in a terminal
COMMANDS = {
    "show": ("show", "{folder}"),
    "compare": ("compare", "{folder}", "--unfinished"),
    "report": ("report", "{folder}", "--out", "{folder}.html"),
    "resume": ("resume", "{folder}", "--inline"),
}


def outcome(command: str, folder: Path) -> dict[str, Any]:
    """Runs a command in a process of its own. Returns its exit code, its output, its fault and its seconds."""
    words = [word.format(folder=folder) for word in COMMANDS[command]]
    reader, writer = os.pipe()
    began = time.monotonic()
    if (child := os.fork()) == 0:
        try:
            ended = CliRunner().invoke(app, words)
            wild = not (ended.exception is None or isinstance(ended.exception, SAID))
            fault = "traceback" if wild or "Traceback" in ended.output else ""
            told = "".join(traceback.format_exception(ended.exception)) if wild and ended.exception else ""
            answer = {"code": ended.exit_code, "output": (ended.output + told)[-3000:], "fault": fault}
            os.write(writer, json.dumps(answer).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    answer = json.loads(text) if text else {"code": -1, "output": "", "fault": "killed"}
    answer["seconds"] = time.monotonic() - began
    if answer["seconds"] > SECONDS:
        answer["fault"] = answer["fault"] or f"took {answer['seconds']:.1f} s"
    return answer


def digest(folder: Path) -> Any:
    return json.loads((folder / "run.json").read_text(encoding="utf-8"))["digest"]["run"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--keep", type=Path, default=Path("damaged"), help="folder for folders that were not taken well"
    )
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    slowest = (0.0, "")
    with tempfile.TemporaryDirectory() as temporary:
        scenario = raysim.load_scenario(
            ROOT / "scenarios" / "quickstart.yaml",
            ["run.rounds=12", "run.evaluate_every=3", "run.checkpoint.every_rounds=3"],
        )
        stopped = raysim.run(scenario, inline=True, out=temporary, observers=[stop_after(7)]).folder
        whole = Path(shutil.copytree(stopped, Path(temporary, "whole", stopped.name)))
        for name in COMMANDS:
            answer = outcome(name, whole)
            assert answer["code"] == 0, answer
        for number in range(given.count):
            draws = random.Random(f"{given.seed}-{number}")
            folder = Path(shutil.copytree(stopped, Path(temporary, str(number), stopped.name)))
            damages = "; ".join(damage(folder, draws) for _ in range(draws.choice([1, 1, 2])))
            kept = Path(shutil.copytree(folder, Path(temporary, "kept", f"{given.seed}-{number}")))
            for name in COMMANDS:
                answer = outcome(name, folder)
                if name == "resume" and answer["code"] == 0 and digest(folder) != digest(whole):
                    answer["fault"] = answer["fault"] or "other rows than those of an undamaged run"
                counts[f"{name}: exit code {answer['code']}"] += 1
                slowest = max(slowest, (answer["seconds"], f"{name} of {given.seed}-{number}"))
                if answer["fault"]:
                    counts["not taken well"] += 1
                    print(
                        f"{given.seed}-{number}: {damages}: {name}: {answer['fault']}\n{answer['output']}", flush=True
                    )
                    shutil.copytree(kept, given.keep / kept.name, dirs_exist_ok=True)
            shutil.rmtree(folder.parent)
            shutil.rmtree(kept)
    print(dict(sorted(counts.items())), f"slowest {slowest[0]:.2f} s ({slowest[1]})")
    sys.exit(counts["not taken well"] > 0)


if __name__ == "__main__":
    main()
