"""What is proposed for a run, by what one client needs."""

from dataclasses import replace
from typing import Any

import pytest
from conftest import digits, override

from actors import OnNode
from raysim.doctor.measurement import Measured, Planned, Usage
from raysim.doctor.node import Examination, Gpu
from raysim.doctor.proposal import Proposal, propose
from raysim.scenario import parse_scenario

GB = 10**9
HERE = replace(Examination(())({}), cpus=8, free_memory_bytes=100 * GB)
SYNCHRONOUS = {"algorithm": "fedavg", "world": {"dispatch": {"per_round": 6}}}


def proposed(measured: dict[str, Any], cpus: int = 8, gpus: int = 0, **changes: Any) -> Proposal:
    card = Gpu("card", 16 * GB, 16 * GB)
    node = OnNode(
        "a", True, {"CPU": cpus, "GPU": gpus}, {}, replace(HERE, cpus=cpus, gpus=(card,) * gpus, torch_sees=gpus)
    )
    facts: dict[str, Any] = {
        "client_s": 1.0,
        "clients": 3,
        "step_s": 0.0,
        "evaluation_s": 0.0,
        "start_s": 0.0,
        "usage": Usage(GB, None, 0, 1000),
        "planned": Planned(600, 100, 10),
    }
    return propose(parse_scenario(override(digits(), **changes)), Measured(**facts | measured), [node])


def test_each_client_of_a_round_gets_an_actor_if_there_is_room() -> None:
    """Rounds wait for all clients, so that 100 rounds take 100 s however many more actors there are."""
    proposal = proposed({}, **SYNCHRONOUS)
    assert (proposal.client_actors, proposal.chunk) == (6, 1)
    assert proposal.seconds == pytest.approx(100, rel=0.01)
    assert proposed({}, cpus=2, **SYNCHRONOUS).seconds == pytest.approx(300, rel=0.01)


def test_clients_that_train_quickly_share_a_job() -> None:
    assert proposed({"client_s": 0.002}, cpus=2, resources__chunk=1).chunk == 3


def test_actors_must_fit_into_the_memory() -> None:
    assert proposed({"usage": Usage(25 * GB, None, 0, 1000)}, **SYNCHRONOUS).client_actors == 3
    assert proposed({"usage": Usage(25 * GB, None, 40 * GB, 1000)}, **SYNCHRONOUS).client_actors == 1


def test_actors_share_gpus_that_hold_several() -> None:
    usage = Usage(GB, 3 * GB, 0, 1000)
    proposal = proposed({"usage": usage}, gpus=1, resources__gpus_per_client=1.0, **SYNCHRONOUS)
    assert (proposal.client_actors, proposal.gpus_per_client) == (4, 0.25)
    assert proposal.settings[1] == "--set resources.gpus_per_client=0.25"


def test_what_is_asked_is_kept_if_it_is_as_good() -> None:
    """Chunks decide the last bits, and should not change for nothing."""
    asked = {"resources": {"client_actors": 3, "chunk": 2}}
    assert proposed({}, cpus=3, **SYNCHRONOUS, **asked).chunk == 2
