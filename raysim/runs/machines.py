"""The machines and processes that a run computes on, for run.json."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from actors import Machine, Process

Kind: TypeAlias = Mapping[str, Any]  # of machine: an entry of the list `machines` of run.json


def kinds_of(machines: Mapping[str, Machine]) -> list[dict[str, Any]]:
    """Returns run.json's list of the workers' machines: an entry for each kind of machine, with the names of its
    workers."""
    kinds: dict[Machine, list[str]] = {}
    for worker, machine in sorted(machines.items()):
        kinds.setdefault(machine, []).append(worker)
    return [{"workers": workers, **machine._asdict()} for machine, workers in kinds.items()]


def workers_of(processes: Mapping[str, Process]) -> list[dict[str, Any]]:
    """Returns run.json's list of the workers' processes: where each of them is."""
    return [{"worker": worker, **process._asdict()} for worker, process in processes.items()]


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
    return f"continues with what may give other last bits ({', '.join(changed)})", True


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
