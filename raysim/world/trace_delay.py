"""Delays that follow from a trace of devices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from raysim.parts.errors import BadValue
from raysim.parts.rng import Stream
from raysim.world.delay import Cost, Delay
from raysim.world.trace_file import Assign, Owners, TraceFile, read_trace

_OWN = ("flops_per_s", "seconds_per_sample", "up_bytes_per_s", "down_bytes_per_s", "latency_s")
_FEDSCALE = ("computation", "communication")
_PASSES = 3  # FedScale: a training step takes three times as long as a forward pass
_KILOBIT = 1024 / 8  # in bytes, as FedScale counts the size of a model


class TraceDelay(Delay):
    """An update takes as long as the client's device in a trace needs for its work and its messages.

    The file has a row for each device. Its columns, of which at least one must be there: `flops_per_s`, or
    `seconds_per_sample` of a training sample, forward and backward; `up_bytes_per_s`; `down_bytes_per_s`; `latency_s`,
    added to every delay. What has no column takes no time. The columns of FedScale's device trace are known too:
    `computation`, milliseconds of a forward pass of a sample, a third of what training on it takes; `communication`,
    kilobits of 1024 bits a second, both up and down. The columns `client`, `device`,
    `watts` and `memory_bytes` may be there; `device` is a name that only people read, `watts` the power of the device,
    as `world.watts` has it, and `memory_bytes` the memory that `capacity: {by: memory}` fits models into.

    Source of the columns: Lai et al., FedScale: benchmarking model and system performance of federated learning at
    scale, ICML 2022.
    """

    name: str = "trace"
    unit: Literal["seconds"] = "seconds"
    path: Annotated[str, Field(examples=["devices.csv"])]
    """CSV file of the devices, or a Parquet file, whose name ends in .parquet."""
    assign: Assign | None = None
    """Which device a client has. client: that of the row with its number in the column `client`. in_order: client 0 has
    that of the first row, and so on. drawn: one at random, each as likely as the others, so clients may have the same
    one. null: client if there is such a column, else drawn."""

    def reads(self) -> tuple[str, ...]:
        return (self.path,)

    def check(self, clients: int) -> None:
        self.devices.owners.check(self.path, "a device", clients)

    @cached_property
    def devices(self) -> Devices:
        """What the file holds. It is read once, and travels with the scenario to where the timeline is."""
        return _read_devices(self.path, self.assign)

    def watts(self, stream: Stream, clients: int) -> list[float] | None:
        return self.devices.of_clients(self.devices.watts, stream, clients)

    def memory(self, stream: Stream, clients: int) -> list[float] | None:
        return self.devices.of_clients(self.devices.memory, stream, clients)

    @property
    def least(self) -> float:
        return float(self.devices.speeds[:, -1].min())

    def duration(self, stream: Stream, client: int, number: int, cost: Cost | None) -> float:
        if cost is None:
            raise BadValue("trace needs the cost of an update")
        speeds: list[float] = self.devices.speeds[self.devices.owners.entry(client, stream)].tolist()
        flops_per_s, seconds_per_sample, up_bytes_per_s, down_bytes_per_s, latency_s = speeds
        training = cost.flops / flops_per_s + cost.samples * seconds_per_sample
        return latency_s + training + (cost.up_bytes / up_bytes_per_s + cost.down_bytes / down_bytes_per_s)

    @property
    def needs_cost(self) -> bool:
        return True


@dataclass(frozen=True, eq=False)  # scenarios are compared by their keys, and arrays cannot be compared
class Devices:
    """The devices of a trace, and who has which."""

    speeds: NDArray[np.float64]  # (devices, 5): a column for each name in _OWN
    watts: NDArray[np.float64] | None  # of each device, (devices,); None if the file does not say
    memory: NDArray[np.float64] | None  # in bytes, as `watts`
    owners: Owners

    def of_clients(self, numbers: NDArray[np.float64] | None, stream: Stream, clients: int) -> list[float] | None:
        """Returns the number of each client's device. stream: the draws of who has which device."""
        if numbers is None:
            return None
        return [float(numbers[self.owners.entry(client, stream)]) for client in range(clients)]


def _read_devices(path: str, assign: Assign | None) -> Devices:
    """Reads a trace of devices. Raises ValueError if it does not hold what it must."""
    trace = read_trace(path)
    trace.require()
    _require_columns(trace)
    watts, memory = (
        trace.numbers(name, positive=True) if name in trace.columns else None for name in ("watts", "memory_bytes")
    )
    assign = assign or ("client" if "client" in trace.columns else "drawn")
    clients = _clients(trace) if assign == "client" else range(len(trace))
    return Devices(_speeds(trace), watts, memory, Owners.by(assign, clients))


def _require_columns(trace: TraceFile) -> None:
    own, theirs = ([name for name in names if name in trace.columns] for names in (_OWN, _FEDSCALE))
    strange = sorted(set(trace.columns) - {*_OWN, *_FEDSCALE, "client", "device", "memory_bytes", "watts"})
    if strange:
        known = f"{', '.join(_OWN)}; FedScale's {' and '.join(_FEDSCALE)}; client, device, memory_bytes and watts"
        text = f"must have columns that are known, which are {known}, got {', '.join(strange)}; rename or remove them"
    elif not own and not theirs:
        text = f"must have one of the columns {', '.join(_OWN)}, or FedScale's {' and '.join(_FEDSCALE)}, got none"
    elif own and theirs:
        text = f"must have columns of one kind, got {own[0]} beside FedScale's {theirs[0]}; remove one"
    elif {"flops_per_s", "seconds_per_sample"} <= set(own):
        text = "must say in one way how fast a device trains, got flops_per_s and seconds_per_sample; remove one"
    else:
        return
    raise ValueError(f"{trace.path}: {text}")


def _speeds(trace: TraceFile) -> NDArray[np.float64]:
    """Returns the columns of _OWN, (devices, 5), also from those of FedScale. What has no column takes no time."""
    found = {name: np.full(len(trace), np.inf if name.endswith("_per_s") else 0.0) for name in _OWN + _FEDSCALE}
    for name in found.keys() & trace.columns.keys():
        found[name] = trace.numbers(name, positive=name.endswith("_per_s") or name == "communication")
    if "computation" in trace.columns:
        found["seconds_per_sample"] = _PASSES * (found["computation"] / 1000)
    if "communication" in trace.columns:
        found["up_bytes_per_s"] = found["down_bytes_per_s"] = found["communication"] * _KILOBIT
    return np.stack([found[name] for name in _OWN], axis=1)


def _clients(trace: TraceFile) -> list[int]:
    """Returns the client of each row. Raises ValueError if a client has two."""
    trace.require("client")
    rows: dict[int, int] = {}
    for row, client in enumerate(trace.clients()):
        if client in rows:
            text = f"client must be there once only, got {client} in {trace.where(rows[client])} too; remove one"
            raise ValueError(f"{trace.path}, {trace.where(row)}: {text}")
        rows[client] = row
    return list(rows)
