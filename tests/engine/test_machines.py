"""What run.json says of the machines that a run computed on."""

import json
from pathlib import Path

import torch
from conftest import digits

import raysim
from actors import InlinePool, Machine, this_machine
from raysim.runs.execution import Execution
from raysim.runs.origin import differences, kinds_of

HERE = torch.backends.cpu.get_cpu_capability().lower()


def test_what_may_give_other_bits_is_named() -> None:
    here = this_machine()
    older = here._replace(capability="other", numpy="1.0")
    entries = kinds_of({"client-1": here, "client-0": older, "client-2": here})
    assert [entry["workers"] for entry in entries] == [["client-0"], ["client-1", "client-2"]]
    assert differences(entries[:1], entries[:1]) == []
    named = differences(entries[:1], entries[1:])
    assert named == [f"capability other and {here.capability}", f"numpy 1.0 and {here.numpy}"]
    assert Machine(**{key: entries[0][key] for key in Machine._fields}) == older


def test_clients_on_gpus_are_not_compared_with_aggregators_on_cpus() -> None:
    here = this_machine()
    entries = kinds_of({"client-0": here._replace(gpu="H200"), "client-1": here._replace(gpu="H200"), "server-0": here})
    assert differences(entries, entries) == []
    others = kinds_of({"client": here, "server": here})  # as an inline run names its workers
    assert differences(entries, others) == ["gpu H200 and None"]


def test_a_worker_that_is_replaced_on_another_kind_of_machine_is_told(tmp_path: Path) -> None:
    """Also if none of the kind before is left, and only once."""
    pool = InlinePool()
    for progress in Execution(raysim.parse_scenario(digits(run__evaluate_every=1)), tmp_path)(pool):
        if progress.round == 3:
            pool.machines = {worker: machine._replace(capability="AVX") for worker, machine in pool.machines.items()}
            pool.processes["another"] = pool.processes["inline"]
    (note,) = json.loads((tmp_path / "run.json").read_text())["notes"]
    assert note == f"continues with what may give other last bits (capability {HERE.upper()} and AVX)"
    assert len([warning for warning in pool.warnings if note in warning]) == 1
