"""Runs algorithms as their pages say, and keeps their curves: all with `python docs/curves.py`, or those that it names.

All of them take about five minutes. The site draws the curves from the file that this writes, so that building it runs
nothing.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "scenarios" / "algorithms").glob("*.yaml"))
CURVES = Path(__file__).parent / "generate" / "curves.json"


def main(folder: Path, wanted: list[str]) -> None:
    """Keeps the curves of the cases that are named, or of all, from runs that it makes in a folder."""
    import raysim

    curves: dict[str, dict[str, Any]] = json.loads(CURVES.read_text()) if wanted else {}
    for path in FILES:
        plan = raysim.load_sweep(path)
        cases = {scenario.name.removeprefix(f"{plan.name}-"): scenario.hash for scenario in plan.scenarios()}
        if not (chosen := [case for case in cases if case in wanted or not wanted]):
            continue
        command = ["raysim", "sweep", path, "--cases", ",".join(chosen), "--inline", "--out", folder]
        subprocess.run([sys.executable, "-m", *command], check=True)
        runs = {run.info["scenario_hash"]: run for run in raysim.load(folder / plan.name).runs}
        curves.setdefault(path.stem, {}).update({case: curve(runs[cases[case]]) for case in chosen})
    CURVES.write_text(json.dumps(curves, separators=(",", ":"), sort_keys=True).replace("},", "},\n") + "\n")


def curve(run: Any) -> dict[str, Any]:
    """Test accuracy: of clients' own models if they have some, else of the global model or the mean of peers."""
    rows = run.pandas("evaluations").query("metric == 'accuracy' and split == 'test'")
    subject = next(name for name in ("client", "peers", "global") if (rows.subject == name).any())
    means = rows[rows.subject == subject].groupby("step", observed=True).agg({"round": "first", "value": "mean"})
    return {
        "scenario": run.info["scenario_hash"],
        "steps": means.index.tolist(),
        "rounds": (means["round"] + 1).tolist(),
        "accuracy": means.value.round(4).tolist(),
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(Path(place), sys.argv[1:])
