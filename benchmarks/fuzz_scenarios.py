"""Checks scenario files that were changed at random: each must be right, or refused with a message, and soon.

    python benchmarks/fuzz_scenarios.py --count 5000

The files are the shipped ones and those of the tests, changed by `tests/scenario/mutations.py`. Each is checked in a
process of its own, so that its time and its memory are known. It needs the packages of `raysim-fl[dev]`. Prints a line
for each file that was not taken well, which stays in `--keep`, and counts; the exit code is then 1.
"""

import argparse
import json
import os
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), *(str(ROOT / "tests" / name) for name in ("", "support", "scenario"))]

import mutations  # noqa: E402

SECONDS, MEGABYTES = 2.0, 500


def checked(path: Path) -> dict[str, Any]:
    """Checks a file in a process of its own. Returns what came of it, with CPU seconds and megabytes."""
    reader, writer = os.pipe()
    began = time.process_time()
    if (child := os.fork()) == 0:
        began = time.process_time()
        try:
            outcome, output = mutations.said(path)
            fault = mutations.fault(path, outcome, output)
        except BaseException as error:
            outcome, output, fault = "raised", traceback.format_exc(), f"raised {type(error).__name__}"
        answer = {"outcome": outcome, "fault": fault, "output": output[:3000], "seconds": time.process_time() - began}
        os.write(writer, json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read()
    _, _, usage = os.wait4(child, 0)
    lost = {"outcome": "killed", "fault": "killed", "output": "", "seconds": time.process_time() - began}
    answer = json.loads(text) if text else lost
    answer["megabytes"] = usage.ru_maxrss / 1024
    if answer["seconds"] > SECONDS or answer["megabytes"] > MEGABYTES:
        answer["fault"] = answer["fault"] or f"took {answer['seconds']:.1f} s and {answer['megabytes']:.0f} MB"
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path("fuzzed"), help="folder for files that were not taken well")
    given = parser.parse_args()
    sources = mutations.sources()
    given.keep.mkdir(parents=True, exist_ok=True)
    for number, text in enumerate(sources):  # they are right, and load what checks load lazily
        path = given.keep / f"source-{number}.yaml"
        path.write_text(text, encoding="utf-8")
        assert mutations.said(path)[0] == "right", path
        path.unlink()
    counts: Counter[str] = Counter()
    slowest = largest = (0.0, "")
    for number in range(given.count):
        rng = np.random.default_rng([given.seed, number])
        text = mutations.mutated(sources[rng.integers(len(sources))], rng)
        path = given.keep / f"{given.seed}-{number}.yaml"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        answer = checked(path)
        counts[answer["outcome"]] += 1
        slowest = max(slowest, (answer["seconds"], path.name))
        largest = max(largest, (answer["megabytes"], path.name))
        if answer["fault"]:
            counts["not taken well"] += 1
            print(f"{path}: {answer['fault']}\n{answer['output']}", flush=True)
        else:
            path.unlink()
    print(dict(counts), f"slowest {slowest[0]:.2f} s ({slowest[1]})", f"largest {largest[0]:.0f} MB ({largest[1]})")
    sys.exit(counts["not taken well"] > 0)


if __name__ == "__main__":
    main()
