"""Delays that follow from a trace of devices."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from raysim.parts.errors import BadValue
from raysim.parts.rng import Stream
from raysim.world.delay import Cost, Delay
from raysim.world.trace_file import TraceFile, read_trace

Assign = Literal["client", "drawn", "in_order"]

_OWN = ("flops_per_s", "seconds_per_sample", "up_bytes_per_s", "down_bytes_per_s", "latency_s")
_FEDSCALE = ("computation", "communication")
_PASSES = 3  # FedScale: a training step takes three times as long as a forward pass
_KILOBIT = 1024 / 8  # in bytes, as FedScale counts the size of a model


class Device(NamedTuple):
    """The speeds of a device."""

    flops_per_s: float
    seconds_per_sample: float
    up_bytes_per_s: float
    down_bytes_per_s: float
    latency_s: float


class TraceDelay(Delay):
    """An update takes as long as the client's device in a trace needs for its work and its messages.

    The file has a row for each device. Its columns, of which at least one must be there: `flops_per_s`, or
    `seconds_per_sample` of a training sample, forward and backward; `up_bytes_per_s`; `down_bytes_per_s`; `latency_s`,
    added to every delay. What has no column takes no time. The columns of FedScale's device trace are known too:
    `computation`, milliseconds of a forward pass of a sample, a third of what training on it takes; `communication`,
    kilobits of 1024 bits a second, both up and down. The columns `client`, `device` and `watts` may be there; `device`
    is a name that only people read, and `watts` the power of the device, as `world.watts` has it.

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
        self.devices.require(clients)

    @cached_property
    def devices(self) -> Devices:
        """What the file holds. It is read once, and travels with the scenario to where the timeline is."""
        return read_devices(self.path, self.assign)

    def watts(self, stream: Stream, clients: int) -> list[float] | None:
        return self.devices.powers(clients, stream)

    @property
    def least(self) -> float:
        return float(self.devices.rows[:, Device._fields.index("latency_s")].min())

    def duration(self, stream: Stream, client: int, number: int, cost: Cost | None) -> float:
        if cost is None:
            raise BadValue("trace needs the cost of an update")
        device = self.devices.of(client, stream)
        training = cost.flops / device.flops_per_s + cost.samples * device.seconds_per_sample
        messages = cost.up_bytes / device.up_bytes_per_s + cost.down_bytes / device.down_bytes_per_s
        return device.latency_s + training + messages

    @property
    def needs_cost(self) -> bool:
        return True


class Devices(NamedTuple):
    """The devices of a trace, and who has which."""

    path: str
    rows: NDArray[np.float64]  # (devices, 5): what a `Device` holds
    places: dict[int, int] | None  # the place in `rows` of each client's device; None if devices are drawn
    watts: NDArray[np.float64] | None  # of each device, (devices,); None if the file does not say

    def of(self, client: int, stream: Stream) -> Device:
        """Returns a client's device."""
        return Device(*self.rows[self._place(client, stream)].tolist())

    def powers(self, clients: int, stream: Stream) -> list[float] | None:
        """Returns the power of each client's device, in W; None if the file does not say."""
        if self.watts is None:
            return None
        of_each: list[float] = self.watts[[self._place(client, stream) for client in range(clients)]].tolist()
        return of_each

    def _place(self, client: int, stream: Stream) -> int:
        return int(stream(client).integers(len(self.rows))) if self.places is None else self.places[client]

    def require(self, clients: int) -> None:
        """Raises ValueError if a client has no device."""
        without = [client for client in range(clients) if client not in self.places] if self.places is not None else []
        if without:
            raise ValueError(
                f"{self.path}: must hold a device for each of {clients} clients, got none for {len(without)} of them, "
                f"such as {without[:3]}; add rows, or set `assign: drawn`"
            )


def read_devices(path: str, assign: Assign | None) -> Devices:
    """Reads a trace of devices. Raises ValueError if it does not hold what it must."""
    trace = read_trace(path)
    trace.require()
    _require_columns(trace)
    rows = np.stack(_in_fedscales_units(trace) if set(_FEDSCALE) & set(trace.columns) else _in_own_units(trace), axis=1)
    watts = trace.numbers("watts", positive=True) if "watts" in trace.columns else None
    if assign == "client" or (assign is None and "client" in trace.columns):
        return Devices(path, rows, _by_client(trace), watts)
    return Devices(path, rows, {row: row for row in range(len(rows))} if assign == "in_order" else None, watts)


def _require_columns(trace: TraceFile) -> None:
    own, theirs = ([name for name in names if name in trace.columns] for names in (_OWN, _FEDSCALE))
    strange = sorted(set(trace.columns) - {*_OWN, *_FEDSCALE, "client", "device", "watts"})
    if strange:
        known = f"{', '.join(_OWN)}; FedScale's {' and '.join(_FEDSCALE)}; client, device and watts"
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


def _in_own_units(trace: TraceFile) -> tuple[NDArray[np.float64], ...]:
    """Returns the columns of `Device`; what has no column takes no time."""
    return (
        _speed(trace, "flops_per_s"),
        _time(trace, "seconds_per_sample"),
        _speed(trace, "up_bytes_per_s"),
        _speed(trace, "down_bytes_per_s"),
        _time(trace, "latency_s"),
    )


def _in_fedscales_units(trace: TraceFile) -> tuple[NDArray[np.float64], ...]:
    """Returns the columns of `Device`, from those of FedScale."""
    none = np.zeros(len(trace))
    forward, bandwidth = _time(trace, "computation") / 1000, _speed(trace, "communication") * _KILOBIT
    return none + np.inf, _PASSES * forward, bandwidth, bandwidth, none


def _speed(trace: TraceFile, name: str) -> NDArray[np.float64]:
    return trace.numbers(name, positive=True) if name in trace.columns else np.full(len(trace), np.inf)


def _time(trace: TraceFile, name: str) -> NDArray[np.float64]:
    return trace.numbers(name) if name in trace.columns else np.zeros(len(trace))


def _by_client(trace: TraceFile) -> dict[int, int]:
    """Returns the row of each client."""
    trace.require("client")
    places: dict[int, int] = {}
    for row, client in enumerate(trace.clients()):
        if client in places:
            text = f"client must be there once only, got {client} in {trace.where(places[client])} too; remove one"
            raise ValueError(f"{trace.path}, {trace.where(row)}: {text}")
        places[client] = row
    return places
