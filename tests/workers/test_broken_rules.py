"""What an algorithm must not do is told where it does it; what it draws has a key."""

import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import Raw, digits
from peers_runs import peers

import raysim

UPDATE = r"train for version 1: {}\.update: "
CLIENT = r" \(.*toys_lawless.py:\d+\) - client \d+, its dispatch 0, model version 0, train$"
OWN = {"data__local_test": 0.2, "run__evaluate_clients": "all", "data__unseen": 0.2}
IN_DOMAIN: Raw = {"server_data": {"name": "in_domain", "samples": 100}}


def run(raw: Raw, out: Path, **options: Any) -> raysim.Result:
    return raysim.run(raysim.parse_scenario(raw), out=out, **{"inline": True, **options})


def lawless(name: str, **more: Any) -> Raw:
    return digits(algorithm=f"toys_lawless:{name}", world__delay="none", run__rounds=2, **{**OWN, **more})


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("ChangesMessage", UPDATE + "must not change in place what it is given, but changed 'w' of message" + ".*"),
        ("ChangesOwnState", UPDATE + "must not change .* but changed 'last' of state; copy it first" + ".*" + CLIENT),
        ("ChangesServerState", r"step to version 1: {}\.step: must not .* but changed 'w' of state; "),
        ("ReplacesInServerState", r"{}\.step: must not .* but changed 'w' of state; leave the dict as it is, and"),
        ("AddsToMessage", UPDATE + "must not .* but changed 'half' of message; leave the dict .*" + CLIENT),
        ("ChangesUpdates", r"step to version 1: .*{}\.step: .* but changed 'delta' of updates; copy it first"),
        ("ChangesInMessage", r": {}\.message: .* but changed 'w' of state; copy .* - model version 0$"),
        ("ChangesInPersonal", r"{}\.personal: .* but changed 'w' of message; .* - client \d+, model version 2, eval"),
        ("ChangesFirstModel", r": {}\.init: .* but changed 'w' of the first model; copy it first"),
        ("NoTuple", UPDATE + "must return two records, the update and the client's next state, got dict" + CLIENT),
        ("SendsFloat", UPDATE + r"'size' of the update must be a tensor, got 0.5; make it one, with torch.tensor"),
        ("OtherEntries", r"must have the entries of those of other clients, \['buffers', 'delta'.*\], got"),
        (
            "LosesState",
            UPDATE + r"the client's next state must have .* `client` returned, \['last'\], got \[\]; return",
        ),
        ("UnknownState", UPDATE + r".*, got \['last', 'more'\]; let `client` return all that is kept" + CLIENT),
        ("ShorterState", UPDATE + r"'last' of the client's next state must stay float32 of shape \(\d+,\), .* \(5,\)"),
        ("OtherType", UPDATE + r"'last' .* must stay float32 of shape \(\d+,\), .* got float64 of shape"),
        ("StepsNowhere", r"step to version 1: .*{}\.step: must return the next state, a dict of tensors, got None"),
        ("ForgetsModel", r"{}\.step: the next state must hold 'w', got \['steps'\]; return state\['w'\] if"),
        ("CountsInFloats", r"step to version 1: .*{}\.step: 'steps' of the next state must be a tensor, got 1.0"),
        ("GrowsServerState", r"{}\.step: 'steps' of the next state must stay float32 of shape \(\), as `init` made it"),
        ("NoModelAtFirst", r"{}\.init: the server's state must hold 'w', got \['steps'\]"),
        ("ShortMessage", r"{}\.message: 'w' of the message must be float32 of shape \(\d+,\), got float32 of shape"),
        ("PredictsNothing", r"{}\.personal: must return a model or a function .*, got .* - client \d+, model version"),
        (
            "OneWeight",
            r"scheduler: .*{}\.weigh \(.*:\d+\), of the step to version 1: must return a weight for each of 6 .*got 1",
        ),
        (
            "NoNumbers",
            r"scheduler: .*{}\.weigh \(.*:\d+\), of the step to version 1: must .* finite numbers, got nan for client",
        ),
        ("AnArray", r"scheduler: .*{}\.weigh.*: must return a list of numbers, or None .*, got ndarray; use .tolist"),
        ("Misspells", r"TypeError: task.train: unknown keyword 'lrr' \(did you mean 'lr'\?\); known are part, "),
        ("WrongValue", r"task.train: epochs: must be an integer, got 'two'"),
        ("NoPersonalPart", r"task.train: part 'personal' must have parameters, got none; name them in"),
    ],
)
def test_a_broken_rule_ends_the_run_and_is_named(name: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(raysim.RunFailed) as caught:
        run(lawless(name), tmp_path)
    assert re.search(told.format(name) if "{}" in told else told, str(caught.value), re.DOTALL), str(caught.value)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("PeerChangesState", r"{}\.local: .* but changed 'w' of state; copy it first.* - peer \d, after 0 mixes,"),
        ("PeerChangesDraft", r"{}\.mix: .* but changed 'start' of draft; copy it first.* - peer \d, after 0 mixes,"),
        ("PeerChangesNeighbour", r"{}\.mix: .* but changed 'w' of the message of neighbour 1; copy it first"),
        ("PeerSendsNothing", r"{}\.local: must return two records, the draft and the message, got dict .* - peer 0"),
        ("PeerForgets", r"{}\.mix: the state must have the entries that `init` returned, \['buffers', 'w'\], got"),
        ("PeerPredictsNothing", r"{}\.personal: must return a model, got None .* - peer 0, after 4 rounds, evaluate"),
    ],
)
def test_a_rule_that_a_peer_breaks_ends_the_run_and_is_named(name: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(raysim.RunFailed) as caught:
        run(peers(algorithm=f"toys_lawless:{name}"), tmp_path)
    assert re.search(told.format(name), str(caught.value)), str(caught.value)


@pytest.mark.parametrize(("name", "got"), [("NoTrigger", "5"), ("EmptyBuffer", "Buffer(size=0)")])
def test_a_trigger_that_is_none_is_refused_before_anything_starts(name: str, got: str) -> None:
    with pytest.raises(raysim.ScenarioError) as caught:
        raysim.parse_scenario(lawless(name))
    assert f"algorithm: {name}.trigger must be a property that gives Round(...), or Buffer(n)" in str(caught.value)
    assert str(caught.value).endswith(f", got {got}")


# --- randomness -------------------------------------------------------------------------------------------------------


def reset(seed: int) -> None:
    """Another state of every global generator, as another script would have left it."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def drawn() -> tuple[float, float, float]:
    return random.random(), np.random.rand(), torch.rand(()).item()


@pytest.mark.parametrize("raw", [lawless("Noisy"), lawless("Purposeful"), peers(algorithm="toys_lawless:NoisyPeer")])
def test_draws_from_global_generators_have_keys(raw: Raw, tmp_path: Path) -> None:
    digests = []
    for start in (1, 2):
        reset(start)
        digests.append(run(raw, tmp_path).digest)
    assert digests[0] == digests[1]
    assert run({**raw, "seed": 1}, tmp_path).digest != digests[0]


@pytest.mark.parametrize("dry", [False, True])
def test_a_run_in_this_process_leaves_its_global_generators_as_they_were(dry: bool, tmp_path: Path) -> None:
    reset(3)
    expected = drawn()
    reset(3)
    run(lawless("Noisy"), tmp_path, dry=dry)
    assert drawn() == expected


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
@pytest.mark.slow
def test_draws_in_shared_work_do_not_depend_on_who_does_it(tmp_path: Path) -> None:
    """Three shards: one aggregator does all of them; of two, the first does two and the other one."""
    asked = lawless("Sharing", resources={"shards": 3, "aggregators": 2}, **IN_DOMAIN)
    alone = lawless("Sharing", resources={"shards": 3}, **IN_DOMAIN)
    assert run(asked, tmp_path, inline=False).digest == run(alone, tmp_path).digest


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("LosesState", r"LosesState\.update: .*; return it as it came \(.*:\d+\) - client \d+, its dispatch 0, model"),
        ("ChangesServerState", r"step to version 1: ChangesServerState\.step: must not change in place"),
    ],
)
@pytest.mark.slow
def test_on_ray_a_broken_rule_is_named_too(name: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(raysim.RunFailed, match=told):
        run(lawless(name), tmp_path, inline=False)
