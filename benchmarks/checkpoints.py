"""Measures what checkpoints cost: seconds and bytes of each, and the part of a run's time that they take.

python benchmarks/checkpoints.py [clients]

All clients of the run keep state (SCAFFOLD), and take part once before the first checkpoint. The first one then holds
the states of all clients, and each later one those of the clients that have taken part since the one before. Then the
same is measured with the settings that a run has by default.
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import raysim
from raysim.engine.saver import Saver


def main(clients: int) -> None:
    print(f"{clients} clients with state, {clients // 10} clients a round")
    measure("every 10 rounds", clients, "{every_s: null, every_rounds: 10, at_end: true}")
    measure("by default", clients, "{}")


def measure(label: str, clients: int, checkpoint: str) -> None:
    """Runs with these settings of `run.checkpoint`, and prints what they cost."""
    keys = [
        "algorithm=scaffold",
        f"data.clients={clients}",
        f"world={{dispatch: {{per_round: {clients // 10}}}}}",
        "model.hidden=[200, 200]",
        "local.epochs=1",
        f"run={{rounds: 40, evaluate_every: 40, checkpoint: {checkpoint}}}",
    ]
    scenario = raysim.load_scenario(Path(__file__).parents[1] / "scenarios" / "quickstart.yaml", keys)
    with tempfile.TemporaryDirectory() as out:
        taken: list[tuple[float, int]] = []
        save = Saver.save

        def measured(saver: Saver) -> None:
            before = files(Path(out))
            began = time.perf_counter()
            save(saver)
            new = {path: size for path, size in files(Path(out)).items() if path not in before}
            if new:
                taken.append((time.perf_counter() - began, sum(new.values())))

        Saver.save = measured  # type: ignore[method-assign]
        began = time.perf_counter()
        result = raysim.run(scenario, out=out, inline=True)
        whole = time.perf_counter() - began
        Saver.save = save  # type: ignore[method-assign]
        parameters: Any = result.info["parameters"]
        for number, (seconds, size) in enumerate(taken):
            print(f"{label}, checkpoint {number + 1}: {seconds:.2f} s, {size / 1e6:.0f} MB written")
        kept = sum(files(Path(out)).values())
        share = sum(s for s, _ in taken) / whole
        print(
            f"{label}: {kept / 1e6:.0f} MB at the end; {share:.1%} of the run's {whole:.0f} s; {parameters} parameters"
        )


def files(out: Path) -> dict[Path, int]:
    """Returns the sizes of the checkpoint's files of records."""
    return {path: path.stat().st_size for path in out.glob("*/checkpoint/records-*")}


main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
