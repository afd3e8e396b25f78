"""Makes the traces of this folder. They are drawn at random and measured on no device.

python examples/traces/make_traces.py
"""

import csv
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
DAY = 24 * 3600


def devices(generator: np.random.Generator, count: int) -> list[list[object]]:
    """Phones of three kinds. Fast ones are mostly on fast networks, too."""
    rows: list[list[object]] = []
    for number in range(count):
        kind = int(generator.integers(3))  # slow, middle, fast
        seconds = 6 / 3**kind * generator.lognormal(0, 0.3)
        up = 3e3 * 3**kind * generator.lognormal(0, 0.5)
        rows.append([f"phone {number}", f"{seconds:.3f}", round(up), round(5 * up)])
    return rows


def nights(generator: np.random.Generator, count: int) -> list[list[object]]:
    """When phones are charged: a night of about seven hours, cut by midnight in most cases, and some afternoons."""
    rows: list[list[object]] = []
    for client in range(count):
        on = int(generator.normal(22.5, 1.5) * 3600) % DAY
        off = (on + int(generator.normal(7, 1) * 3600)) % DAY
        spans = [(on, off)] if on < off else [(0, off), (on, DAY)]
        if generator.random() < 0.3:
            noon = int(generator.uniform(13, 17) * 3600)
            spans.append((noon, noon + 3600))
        rows += [[client, *span] for span in sorted(spans)]
    return rows


def write(name: str, header: list[str], rows: list[list[object]]) -> None:
    with (HERE / name).open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


if __name__ == "__main__":
    draw = np.random.default_rng(0)
    write("devices.csv", ["device", "seconds_per_sample", "up_bytes_per_s", "down_bytes_per_s"], devices(draw, 60))
    write("charging.csv", ["client", "on", "off"], nights(draw, 80))
