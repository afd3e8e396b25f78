"""The machines and processes that a run computes on, for run.json, and the instruction set that it pins."""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

from actors import JobFailed, Life, Machine
from raysim.parts.errors import Problem, ScenarioError

Kind: TypeAlias = Mapping[str, Any]  # of machine: an entry of the list `machines` of run.json

# torch's own kernels, oneDNN and MKL each choose by themselves; all read these when they are loaded or first used.
_VARIABLES = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS")
_PINNED = {
    "default": ("default", "SSE41", "SSE4_2"),
    "avx2": ("avx2", "AVX2", "AVX2"),
    "avx512": ("avx512", "AVX512_CORE", "AVX512"),
}


def environment(capability: str | None) -> dict[str, str]:
    """Returns the environment variables that hold a process to an instruction set; {} for None."""
    return {} if capability is None else dict(zip(_VARIABLES, _PINNED[capability], strict=True))


def pin(capability: str | None) -> None:
    """Holds this process to an instruction set, for as long as it lives.

    Raises ScenarioError if torch is loaded already and uses another one: it cannot change.
    """
    if capability is None:
        return
    torch = sys.modules.get("torch")
    if torch is not None and (found := torch.backends.cpu.get_cpu_capability().lower()) != capability:
        variables = " ".join(f"{name}={value}" for name, value in environment(capability).items())
        text = (
            f"must be what torch uses in this process, where it is loaded already, got {capability!r}, and torch uses "
            f"{found!r}; run it on Ray, or start with {variables} in the environment"
        )
        raise ScenarioError("inline", [Problem("resources.cpu_capability", text)])
    os.environ.update(environment(capability))


def kinds_of(machines: Mapping[str, Machine]) -> list[dict[str, Any]]:
    """Returns run.json's list of the workers' machines: an entry for each kind of machine, with the names of its
    workers."""
    kinds: dict[Machine, list[str]] = {}
    for worker, machine in sorted(machines.items()):
        kinds.setdefault(machine, []).append(worker)
    return [{"workers": workers, **machine._asdict()} for machine, workers in kinds.items()]


def workers_of(lives: Iterable[Life]) -> list[dict[str, Any]]:
    """Returns run.json's list of the workers' processes: where each ran, and from when to when.

    A process that lived until the run ended, or was interrupted, has no end.
    """
    return [
        {"worker": life.worker, **life.process._asdict(), "since": _date(life.since), "until": _date(life.until)}
        for life in lives
    ]


def _date(moment: float | None) -> str | None:
    return None if moment is None else datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")


def what_differs(known: Sequence[Kind], found: Sequence[Kind]) -> tuple[str, bool] | None:
    """Returns how the machines of a run differ from each other, or from those before, in what last bits depend on, and
    whether run.json is to note it, because its list of machines does not show it; None if they do not differ.

    known, found: the kinds of machines in its record before, and now.
    """
    if not (changed := differences(known, found)):
        return None
    if different := differences(found, found):
        what = ", ".join(different)
        text = f"workers differ in what last bits depend on ({what}), so another run may give others"
        return text, False
    return f"goes on with what may give other last bits ({', '.join(changed)})", True


def require_capability(machines: Mapping[str, Machine], capability: str | None) -> None:
    """Raises JobFailed if a worker does not have the instruction set that the scenario pins, if any."""
    for worker, machine in machines.items():
        if capability is not None and (machine.capability or "").lower() != capability:
            text = f"resources.cpu_capability must be one that the CPU has, got {capability}, and torch uses "
            raise JobFailed(worker, text + f"{machine.capability}; take a lower one", "")


def differences(one: Sequence[Kind], other: Sequence[Kind]) -> list[str]:
    """Returns the differences between the machines of two runs for which the same work may give other bits; empty if
    there are none.

    one, other: the values of `machines` in two run.json, or two parts of one run.json's. Only machines with workers of
    the same group are compared, because clients may be on GPUs and aggregators on CPUs.
    """
    pairs = [(_machine(mine), _machine(theirs)) for mine in one for theirs in other if _groups(mine) & _groups(theirs)]
    return list(dict.fromkeys(text for mine, theirs in pairs for text in mine.differences(theirs)))


def _groups(entry: Kind) -> set[str]:
    """Returns the groups of the workers on a kind of machine. Inline, a worker has the name of its group."""
    return {worker.partition("-")[0] for worker in entry["workers"]}


def _machine(entry: Kind) -> Machine:
    return Machine(*(entry.get(name) for name in Machine._fields))  # type: ignore[arg-type]  # read from JSON
