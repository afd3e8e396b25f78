"""Runs every algorithm as its page says, and keeps its curve: `python docs/curves.py`.

It takes about five minutes. The site draws the curves from the file that this writes, so that building it runs nothing.
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


def main(folder: Path) -> None:
    """Keeps the curves of the sweeps in a folder; makes those that are not there."""
    import raysim

    curves: dict[str, dict[str, Any]] = {}
    for path in FILES:
        subprocess.run([sys.executable, "-m", "raysim", "sweep", path, "--inline", "--out", folder], check=True)
        plan = raysim.load_sweep(path)
        cases = {scenario.hash: scenario.name.removeprefix(f"{plan.name}-") for scenario in plan.scenarios()}
        runs = {run.info["scenario_hash"]: run for run in raysim.load(folder / plan.name).runs}
        curves[path.stem] = {case: curve(runs[scenario]) for scenario, case in cases.items()}
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
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as place:
            main(Path(place))
