"""Every part that comes with raysim keeps the laws that `raysim test` tries; what breaks one is told which."""

from pathlib import Path

import pytest
from command_line import command, write
from conftest import digits

from raysim.laws import algorithm, runs
from raysim.laws.check import Judgement, check, judge, laws_of
from raysim.laws.subject import Subject
from raysim.parts.part import names_of
from raysim.scenario.kinds import kinds

NAMES = [f"{kind.key}/{names_of(part)[0]}" for kind in kinds() for part in kind.parts]
# Keys with which parts are tried, where their defaults do not suit a small trial.
SETTINGS = {
    "algorithm/pfedme": ["lam=1.0", "local_rounds=3"],
    "local.augment/function": ["function=own_modules:doubled"],
    "data.partition/natural": ["by=label"],
    "data.partition/classes": ["per_client=2"],
    "model/cnn": ["padding=same", "hidden=16"],
    "model/module": ["module=own_modules:Net"],
    "model/resnet": ["depth=14"],
    "run.loss/function": ["function=own_modules:hinge"],
    "run.metrics/function": ["function=own_modules:hits"],
    "topology/edges": ["edges=[[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6], [6, 7], [7, 0]]"],
    "world.dispatch.policy/power_of_choice": ["candidates=5"],
    "world.dispatch.policy/weighted": [f"weights={[1.0] * 8}"],
    "world.delay/scripted": [f"delays={[[0.0] * 6] * 8}"],
}
ABSENT = {  # whose files or libraries are not at hand, or that need more clients in a step than a small trial has
    *("algorithm.aggregate/bulyan", "algorithm.aggregate/krum"),
    *("data/mnist", "data/fashion_mnist", "data/cifar10", "data/cifar100", "data/parquet", "data/image_folder"),
    *("data/isic2019", "data/femnist", "data/celeba", "data/shakespeare"),
    *(
        "data/arrays",
        "data/client_files",
        "data/table",
        "data/text",
        "data/huggingface",
        "data/torch",
        "data.partition/indices",
    ),
    "data.tokenizer/folder",
    *("run.log/wandb", "run.log/mlflow"),
    *("world.delay/trace", "world.availability/trace", "world.links/trace", "world.links/positions"),
    *("model/torchvision", "model/timm"),
}
SLOW = {
    "model/resnet",
    "model/deq_mlp",
    "model/deq_resnet",
    "model/deq_transformer",
    *("model/causal_lm", "model/sequence_classifier"),
    "data/linear_regression",
}


# The first part of each kind, and one algorithm of each sort, with which all laws are tried. Runs of a solver, which
# take longest, are tried in `tests/models/test_deq.py`.
REPRESENTATIVE = {
    *{name.rpartition("/")[0]: name for name in reversed(NAMES) if name not in ABSENT | SLOW}.values(),
    *(f"algorithm/{name}" for name in ("fedbuff", "scaffold", "feddle", "fedper", "dfedadmm")),
} - {"model.solver/iteration"}
# What the other parts try only where it is asked for: the same run again, and further ones of algorithms. A run of each
# part but an algorithm is the engine's work more than the part's, so theirs are among these.
FURTHER = {
    runs.the_same_bits_again,
    runs.the_same_bits_when_it_goes_on,
    algorithm.it_comes_nearer_on_quadratics,
    algorithm.clients_may_hold_no_samples,
}


def not_ok(subject: Subject) -> list[Judgement]:
    """What failed, or was not tried for no good reason."""
    return [outcome for outcome in check(subject, ray=False) if outcome.state == "failed"]


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n not in REPRESENTATIVE)) for n in NAMES if n not in ABSENT]
)
def test_every_part_keeps_the_laws_of_its_kind(name: str) -> None:
    outcomes = list(check(Subject(name, SETTINGS.get(name, [])), ray=False))
    assert [outcome for outcome in outcomes if outcome.state == "failed"] == []
    assert sum(outcome.state == "ok" for outcome in outcomes) >= 4


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ABSENT | SLOW | REPRESENTATIVE])
def test_every_part_keeps_the_laws_of_its_own(name: str) -> None:
    """Those that need no further run."""
    subject = Subject(name, SETTINGS.get(name, []))
    left_out = FURTHER if subject.kind.key == "algorithm" else FURTHER | {runs.it_runs}
    groups = [[law for law in group if law not in left_out] for group in laws_of(subject, ray=False)]
    outcomes = list(judge(groups, subject))
    assert [outcome for outcome in outcomes if outcome.state == "failed"] == []
    assert sum(outcome.state == "ok" for outcome in outcomes) >= 2


# Which a law might take for broken ones. That it passes the plain ones, those that break another law show.
RIGHT = ["GoesPast", "StepsFar", "Magnifies", "SaysItNeedsImages", "SaysThatItTrainsTwice", "MayGiveNothing"]
RIGHT += ["BeginsWithOnes", "Gathers", "RoundsDelays"]
BROKEN = {
    "Shortens": ("`send` returns a vector of the shape", "must return float32 of shape (64,), got torch.float32 (63,)"),
    "Normalises": ("A vector of zeros", "send: must return finite numbers for zeros"),
    "DrawsAnew": ("`send` gives the same", "must draw from `at.draw` only"),
    "RoundsDown": ("Where it says that it is unbiased", "as `unbiased` says, is off by"),
    "StretchesMore": ("No vector becomes longer", "by more than stretch says, 1.5, got 2"),
    "SaysLess": ("`size` gives bytes", "64 numbers that are not zero, got 3 values"),
    "AddsMore": ("With a standard deviation of 0", "must leave the sum as it is where the noise has no size"),
    "DrawsNoiseAnew": ("Equal seeds and steps give equal noise", "draw: must draw from `normal` only"),
    "DrawsOnce": ("Equal seeds and steps give equal noise", "got the same noise in step 1"),
    "HalfNoise": ("Its standard deviation is", "must have a standard deviation of 1, got 0.5"),
    "CountsHalf": ("What clients are exposed to", "must add up squared weights by the largest one, got epsilon"),
    "MovesACopy": ("`move` changes w in place", "move: must change w in place, as w.add_(...) does"),
    "GrowsItsState": ("`move` changes w in place", "must keep the entries [] of the state, got ['gradient 0']"),
    "SmallState": ("`init` returns vectors like w", "must return vectors of shape (8,) like w"),
    "LeavesBounds": ("`curve` returns finite numbers", "curve, at 0.5: must be within `values`, 0.05 to 0.1, got"),
    "CountsTooFew": ("A run with it goes", "must give tokens below the size of its vocabulary, 5, got"),
    "OverwritesUnseen": ("A run with it goes", "must not change in place what it is given, but changed 'w' of state"),
    "SetsAttribute": ("A run with it goes", "SetsAttribute.step: must set no attribute of the algorithm, but sets"),
    "SumsNothing": ("A run with it goes", "if `weigh` returns None, updates come as a stack: sum over its first axis"),
    "FailsToSee": ("It sees a run from its begin to its end", "FailsToSee: ZeroDivisionError: division by zero, at "),
    "Draws": ("A second run gives the same bits", "the second run: must have the digest of the first run, "),
    **dict.fromkeys(
        ("OtherValues", "DrawsData", "DrawsPartition", "DrawsPicks"),
        ("A second run gives the same bits", "the second run: must have the digest of the first run, "),
    ),
    "DrawsTopology": ("A seed decides the graph", "graph: must be the same for the same generator"),
    "Remembers": ("A second run gives the same bits", "of the table updates, whose loss_before is "),
    "KeepsOnItself": ("A run that is interrupted and continues", "runs change KeepsOnItself._first, which no"),
    "Diverges": ("A run with it goes", "the trial: must stay finite, but 'w' of the server's model was not, in round"),
    "Stays": ("On quadratics", "less than the whole way may be left, got 1 with local.lr 0.3, 1 with local.lr 0.001"),
    "SendsInTurns": ("A run with it goes", "message: the message must have the entries of the first one, ['w'], got"),
    "TrainsTwice": ("`samples_seen` is what", "gradients for the 16 samples that `samples_seen` says, got 32; correct"),
    "KeepsSomeWeight": ("While nobody steps, the sums", "the sum of 'weight' over all peers, and of what is under way"),
    "PushesTheNewest": ("While nobody steps, the sums", "`consumes` must be true, and `mix` add what"),
    "PeerTrainsTwice": ("`samples_seen` is what", "client 0: must compute gradients for the"),
    "NeedsImages": ("On quadratics", "says so in its `problems`"),
    "WaitsForNothing": ("A scenario file can name it", "trigger must be a property that gives Round(...)"),
    "DropsAlways": ("In eval mode", "must predict the same each time in eval mode, got values"),
    "SeesTheBatch": ("In eval mode", "must predict a sample alike alone and in a batch"),
    "KeepsOutside": ("Its parameters go into one flat vector", "must predict the same once another module's vector"),
    "JoinsOtherUnits": ("At half of its widths", "build_at: head of a narrower model does not compute a part of what"),
    "GrowsWhereCut": (
        "At half of its widths",
        "build_at: one.weight must be larger in the server's model, got (4, 64)",
    ),
    "NarrowsAnew": ("What one process cuts out", "build_at: must give the same shapes each time"),
    "NarrowsLess": ("What is cut at a level", "must build a quarter of its widths as a part of the half, got "),
    "UnevenHeads": ("Slices that move on", "each of 11 units must be held by 3 of 5 slices, got 0 to 3; do heads"),
    "DrawsSlices": ("A second run gives the same bits", "the second run: must have the digest of the first run, "),
    "OtherOutputs": ("A run with it goes", "must return logits (n, 10), one for each of 10 labels, got shape"),
    "NeedsSamples": ("It runs where some clients hold no samples", "AssertionError"),
    "NeedsNeighbours": ("A run with it goes", "AssertionError"),
    "TooManyLabels": ("A run with it goes", "train: labels must be 0 to 1, as num_classes says, got 0 to 2"),
    "GivesTwice": ("A run with it goes", "a row must go to one client at most, got ["),
    "IgnoresSeed": ("Another seed divides otherwise", "another seed must divide otherwise, got the same rows"),
    "PicksMore": ("A run with it goes", "must pick at most "),
    "Negative": ("Delays are finite", "must be a finite number of at least 0, got -0."),
    "CountsDelays": ("The delay of a client's dispatch is the same", "must be the same in any order, "),
    "PromisesMore": ("No delay is less than `least`", "must be at least `least`, 2, got 0."),
    "NeedsCost": ("A run with it goes", "AttributeError: 'NoneType' object has no attribute"),
    "ChangesUnforetold": ("Between a time and `next_change`", "when the mask changes, got 3"),
    "NeverComes": ("Every client is there at some time", "must be true for each client at some time, is never for [3]"),
    "LinksUnforetold": ("`up` returns true or false", "must stay until `next_change`, 3, but differs at 0"),
    "InParts": ("A scenario file can name it", "`graph` must be connected, but no way leads from peer 0 to [3, 4, 5,"),
    "TooHeavy": ("The weights of any pair of degrees", "a peer with 2 neighbours and one with 1: must be between 0"),
    "Rises": ("S(s) does not grow", "S(s): must not grow with s, but does"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_class_of_ones_own_that_keeps_the_laws_passes(name: str) -> None:
    assert not_ok(Subject(f"broken_parts:{name}")) == []


@pytest.mark.parametrize("name", ["metrics/own_modules:hits", "loss/own_modules:hinge", "model/own_modules:Net"])
def test_functions_and_modules_are_tested_too(name: str) -> None:
    assert not_ok(Subject(name)) == []


@pytest.mark.parametrize(
    ("name", "law", "text"),
    [
        ("metrics/own_modules:shapes", "A run with it goes", "must give one number, got"),
        ("metrics/broken_parts:right_at_first", "It does not depend on the order", "must be the same for samples in"),
        ("metrics/broken_parts:first", "It does not depend on the order", "must be the same for samples in another or"),
        ("loss/own_modules:mean_hinge", "`each` returns a finite loss", "a loss for each sample, shape (40,), got ()"),
        ("loss/broken_parts:centred", "`each` returns a finite loss", "must not depend on the other samples"),
        ("loss/broken_parts:constant", "Its gradient", "must be differentiable in the outputs"),
    ],
)
def test_what_breaks_a_law_of_metrics_and_losses_is_told(name: str, law: str, text: str) -> None:
    (failed,) = not_ok(Subject(name))
    assert failed.law.startswith(law)
    assert text in failed.text


@pytest.mark.parametrize("name", BROKEN)
def test_what_breaks_a_law_fails_at_that_law_alone(name: str) -> None:
    law, text = BROKEN[name]
    (failed,) = not_ok(Subject(f"broken_parts:{name}"))
    assert failed.law.startswith(law)
    assert text in failed.text


def test_a_part_for_some_data_is_tried_with_those_of_its_file(tmp_path: Path) -> None:
    raw = digits(data__clients=5, data__partition="iid", world__dispatch__per_round=2)
    assert not_ok(Subject("broken_parts:SomeToEach", scenario=write(tmp_path, raw))) == []


def test_a_law_that_a_file_has_too_few_samples_for_is_not_tried(tmp_path: Path) -> None:
    """Forty samples make no sixty clients, which is no fault of the algorithm's."""
    raw = digits(algorithm="broken_parts:Right", data__clients=8, data__train_samples=40)
    outcomes = list(check(Subject("broken_parts:Right", scenario=write(tmp_path, raw)), ray=False))
    assert {outcome.state for outcome in outcomes} == {"ok", "not tried"}
    (left_out,) = [outcome for outcome in outcomes if outcome.state == "not tried"]
    assert left_out.law == "It runs where some clients hold no samples"
    assert left_out.text.startswith("this scenario cannot have clients without samples: ")


def test_the_command_has_a_line_for_each_law_and_an_exit_code() -> None:
    right = command("test", "broken_parts:Right", "--no-ray")
    assert right.exit_code == 0
    lines = right.stdout.splitlines()
    assert lines[0] == "algorithm: broken_parts:Right"
    assert all(line.startswith("ok  ") for line in lines[1:-1])
    assert lines[-1] == f"{len(lines) - 2} ok"
    wrong = command("test", "broken_parts:Overwrites", "--no-ray")
    assert wrong.exit_code == 1
    assert "failed     A run with it goes from start to end" in wrong.stdout
    assert wrong.stdout.splitlines()[-1].endswith(" ok, 1 failed, 5 not tried")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["json:loads"], "must name a subclass of a base that raysim has for parts"),
        (["random"], "must be module:Class, or the name of a part, topology/random or availability/random, got"),
        (["fedbuf"], "one that `raysim list` shows, got 'fedbuf'"),
        (["fedbuff", "--set", "buffer"], "must be key.path=value, got 'buffer'"),
    ],
)
def test_what_cannot_be_tested_is_refused(words: list[str], expected: str) -> None:
    answer = command("test", *words)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert expected in answer.stderr


def test_wrong_keys_are_told() -> None:
    answer = command("test", "fedbuff", "--no-ray", "--set", "bufer=3")
    assert answer.exit_code == 1
    assert "bufer: unknown key (did you mean 'buffer'?)" in answer.stdout


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize("name", ["broken_parts:Right", "broken_parts:RightPeer"])
def test_ray_gives_the_same_bits(name: str) -> None:
    last = list(check(Subject(name)))[-1]
    assert (last.state, last.law) == ("ok", "Ray gives the same bits, with one worker and with two")
