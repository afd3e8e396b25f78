"""Measures the memory of one process that trains adapters of 8, 16 and 64 clients on one frozen base.

    python benchmarks/lora_memory.py

Each number of clients is a run in a process of its own, without Ray: all of them train in each of two rounds, and their
updates are summed. The base is a network of 135 MB. Linux only.
"""

import multiprocessing
import tempfile
from pathlib import Path

import raysim

CLIENTS = (8, 16, 64)
LORA = {"rank": 8}
MB = 2**20


def scenario(clients: int) -> raysim.Scenario:
    return raysim.parse_scenario(
        {
            "name": "lora_memory",
            "data": {"name": "digits", "clients": clients, "partition": "iid"},
            "model": {"name": "mlp", "hidden": [4096, 4096, 4096], "lora": LORA},
            "algorithm": "fedavg",
            "local": {"batch_size": 8, "steps": 2},
            "world": {"dispatch": {"per_round": clients}},
            "run": {"rounds": 2},
            "resources": {"chunk": clients},
        }
    )


def measure(clients: int) -> tuple[float, float, float]:
    """Returns the peak of resident memory, and what an update and a frozen base take, in MB."""
    with tempfile.TemporaryDirectory() as folder:
        result = raysim.run(scenario(clients), out=folder, inline=True)
        sent = result.pandas("updates").up_bytes.max() / MB
        frozen = sum(p.numel() for name, p in result.module().named_parameters() if ".base_layer." in name) * 4 / MB
    status = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
    return peak, sent, frozen


def main() -> None:
    print(f"{'clients':>8} {'peak, MB':>10} {'update, MB':>11} {'base, MB':>9}")
    for clients in CLIENTS:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            peak, sent, frozen = pool.apply(measure, (clients,))
        print(f"{clients:>8} {peak:>10.0f} {sent:>11.2f} {frozen:>9.0f}")


if __name__ == "__main__":
    main()
