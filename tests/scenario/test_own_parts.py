"""Parts of one's own, of every kind: by module and class, and as objects."""

import gc
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import toys_parts
from command_line import command
from conftest import ROOT, Raw, override
from refusals import problem
from ruamel.yaml import YAML
from same_bits import same_on_ray

import raysim
from raysim.algorithms import DecFedAvg, FedAvg
from raysim.data import Quadratic
from raysim.models import MLP, Vector
from raysim.parts import own
from raysim.parts.own_code import sources_of
from raysim.scenario import RunSettings, Scenario
from raysim.scenario.kinds import kinds
from raysim.world import Dispatch, World


def server() -> Raw:
    """A scenario whose parts are all of one's own, as far as algorithms with a server have them."""
    return {
        "name": "own",
        "data": {"name": "toys_parts:Points", "clients": 6, "partition": "toys_parts:Turns"},
        "server_data": "toys_parts:FirstRows",
        "model": {"name": "toys_parts:TwoLayers", "width": 5},
        "algorithm": "toys_parts:Mean",
        "uplink": [{"name": "toys_parts:Halves", "factor": 0.5}],
        "world": {
            "dispatch": {"per_round": 2, "policy": "toys_parts:Lowest"},
            "delay": {"name": "toys_parts:Slow", "share": 0.4},
            "availability": "toys_parts:Even",
        },
        "run": {
            "rounds": 4,
            "evaluate_every": 2,
            "metrics": [{"name": "toys_parts:Confidence", "power": 2.0}],
            "loss": {"name": "toys_parts:Surprise"},
        },
    }


def peers() -> Raw:
    """A scenario of peers in which every part is a class from outside."""
    return {
        "name": "own",
        "data": {"name": "toys_parts:Points", "clients": 6, "partition": "toys_parts:Turns"},
        "model": "toys_parts:TwoLayers",
        "algorithm": "toys_parts:Gossip",
        "topology": {"name": "toys_parts:Wheel", "weights": "toys_parts:Tenth"},
        "world": {
            "synchronous": False,
            "delay": {"name": "constant", "value": 5.0, "unit": "seconds"},
            "edge_delay": {"name": "toys_parts:Message", "high": 3.0},
        },
        "run": {"rounds": 3},
    }


def nested() -> Raw:
    """Parts within parts."""
    coin = {"name": "toys_parts:Coin", "high": 1e9}
    iid = {"name": "iid", "sizes": "toys_parts:FirstHasMore"}
    return override(
        server(),
        data={"name": "digits", "clients": 6, "partition": iid, "skew": "toys_parts:Negative", "train_samples": 100},
        algorithm={"name": "fedasync", "staleness": "toys_parts:Squared"},
        uplink=[{"name": "clip_norm", "max": 1.0}],
        release={"name": "toys_parts:Ones", "multiplier": 1e-3},
        local={"lr": 0.01, "optimizer": "toys_parts:Signs", "gradients": ["toys_parts:Doubled"]},
        model={"name": "deq_mlp", "width": 4, "hidden": 4, "solver": "toys_parts:Halving"},
        world__delay={"name": "compute", "flops_per_s": coin, "up_bytes_per_s": coin, "down_bytes_per_s": coin},
    )


def stepping() -> Raw:
    """How a server steps, what changes as the run goes on, and clients that differ."""
    return override(
        server(),
        algorithm={"name": "fedavg", "server": "toys_parts:Halfway", "aggregate": "toys_parts:OnlyFirst"},
        local__lr={"name": "toys_parts:Harmonic", "start": 0.2},
        clients=[{"name": "some", "number": 2, "behaviour": "toys_parts:Double"}],
    )


SCENARIOS = {"server": server, "peers": peers, "nested": nested, "stepping": stepping}


def objects(raw: Any, module: Any = toys_parts) -> Any:
    """Scenarios in which objects of these classes stand for blocks."""
    if isinstance(raw, str) and raw.startswith("toys_parts:"):
        return objects({"name": raw}, module)
    if isinstance(raw, list):
        return [objects(item, module) for item in raw]
    if not isinstance(raw, dict):
        return raw
    block = {key: objects(value, module) if key != "name" else value for key, value in raw.items()}
    if not str(raw.get("name")).startswith("toys_parts:"):
        return block
    part = getattr(module, block.pop("name").partition(":")[2])
    return part(**block)


KINDS = {kind.key: kind.choice for kind in kinds() if kind.choice.bases[0].__name__ != "Images"}


# --- runs -------------------------------------------------------------------------------------------------------------


def test_the_toys_are_of_every_kind() -> None:
    missing = []
    for group, kind in KINDS.items():
        classes = [value for value in vars(toys_parts).values() if isinstance(value, type)]
        if not any(issubclass(c, kind.bases) and c.__module__ == "toys_parts" for c in classes):
            missing.append(group)
    assert missing == []


def test_every_base_class_is_where_messages_say() -> None:
    for kind in KINDS.values():
        for base in kind.bases:
            module, _, name = own.public_path(base).rpartition(".")
            assert getattr(import_module(module), name) is base


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_run_of_ones_own_parts_by_name_or_as_objects(name: str, tmp_path: Path) -> None:
    raw = SCENARIOS[name]()
    YAML().dump(raw, tmp_path / "own.yaml")
    answer = command("run", tmp_path / "own.yaml", "--inline", "--out", tmp_path / "named")
    assert answer.exit_code == 0, answer.output
    (folder,) = (tmp_path / "named").iterdir()
    named = raysim.Result(folder)
    given = raysim.run(objects(raw), out=tmp_path / "objects", inline=True)
    assert given.digest == named.digest
    assert given.info["scenario"] == named.info["scenario"]
    assert given.info["scenario"]["model"]["name"] in ("toys_parts:TwoLayers", "deq_mlp")
    assert given.info["scenario_hash"] == named.info["scenario_hash"]


def test_check_and_a_dry_run_know_them(tmp_path: Path) -> None:
    YAML().dump(server(), tmp_path / "own.yaml")
    assert "own.yaml: right (own, toys_parts:Mean, 6 clients)" in command("check", tmp_path / "own.yaml").stdout
    answer = command("run", tmp_path / "own.yaml", "--dry", "--out", tmp_path / "runs")
    assert answer.exit_code == 0, answer.output


@pytest.mark.usefixtures("here")
def test_a_sweep_varies_them(tmp_path: Path) -> None:
    grid = {"model": ["toys_parts:TwoLayers", "linear"], "world.delay": ["none", {"name": "toys_parts:Slow"}]}
    YAML().dump({**server(), "sweep": {"grid": grid}}, tmp_path / "own.yaml")
    answer = command("sweep", tmp_path / "own.yaml", "--inline", "--parallel", "1", "--out", tmp_path / "runs")
    assert "4 runs: 4 finished" in answer.stdout


@pytest.mark.ray
@pytest.mark.parametrize("name", ["server", "peers"])
@pytest.mark.slow
def test_the_same_bits_on_ray_where_workers_cannot_import_the_module_by_themselves(
    name: str, ray_session: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = f"my_parts_{name}"
    shutil.copy(ROOT / "tests" / "support" / "toys_parts.py", tmp_path / f"{module}.py")
    monkeypatch.syspath_prepend(tmp_path)
    raw = objects(SCENARIOS[name](), import_module(module))
    assert f"{module}:" in str(same_on_ray(raw, tmp_path).info["scenario"])


SCRIPT = """
import sys
sys.path[:0] = ["{root}/tests"]
import conftest, raysim
from raysim.world import Delay
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(64, 10)
    def forward(self, x):
        return self.head(x.flatten(1))

class Mine(Delay):
    name: str = "mine"
    unit: str = "rounds"
    def duration(self, stream, client, number, cost):
        return float(client == 0)

if __name__ == "__main__":
    raw = conftest.digits(model=Net(), world__delay=Mine(), run__rounds=3)
    runs = [raysim.run(raw, out="runs", inline=inline) for inline in (True, False)]
    print(runs[0].digest == runs[1].digest, runs[0].info["scenario"]["world"]["delay"]["name"])
    print("class Net" in (runs[0].folder / "code" / "__main__.py").read_text(), len(runs[0].info["notes"]))
"""


@pytest.mark.ray
@pytest.mark.long
def test_classes_of_a_script_work_on_ray_too(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT.format(root=ROOT))
    answer = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert answer.stdout.split() == ["True", "__main__:Mine", "True", "2"], answer.stderr


NOTEBOOK = """
import sys
sys.path[:0] = ["{root}/tests"]
import conftest, raysim, torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import Dataset

class Net(nn.Module):
    def __init__(self, classes, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(64, width), nn.Linear(width, classes))
    def forward(self, x):
        return self.layers(x)

def sure(outputs, labels):
    return (outputs.softmax(1).amax(1) > 0.9).float().mean()

def surprise(outputs, labels):
    return cross_entropy(outputs, labels, reduction="none")

class Waves(Dataset):
    def __init__(self, samples):
        self.samples = samples
    def __len__(self):
        return self.samples
    def __getitem__(self, place):
        return (torch.arange(64.0) * place).sin(), place % 10

data = {{"name": "torch", "train": Waves, "args": {{"samples": 300}}, "clients": 30, "partition": "iid"}}
model = {{"name": "module", "module": Net, "args": {{"width": 4}}}}
run = {{"rounds": 3, "metrics": [sure], "loss": surprise}}
raw = conftest.digits(data=data, model=model, run=run, resources__client_actors=2, resources__cpus_per_client=0.5)
runs = [raysim.run(raw, out="runs", inline=inline) for inline in (True, False)]
(outcome,) = raysim.run_all([raysim.parse_scenario(raw)], out="sweep", inline=True)
print(runs[0].digest == runs[1].digest == raysim.Result(outcome.folder).digest)
print(*runs[1].info["notes"], sep="\\n")
"""


@pytest.mark.ray
@pytest.mark.long
def test_functions_and_modules_of_a_notebook_work_in_other_processes_too(tmp_path: Path) -> None:
    code = NOTEBOOK.format(root=ROOT)
    answer = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    text = "of a script or notebook, which cannot be imported elsewhere; put it into a module"
    kinds = ("Net is a class", "Waves is a class", "sure is a function", "surprise is a function")
    notes = [f"{kind} {text}" for kind in kinds]
    assert answer.stdout.splitlines() == ["True", *notes], answer.stderr


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", KINDS)
def test_a_class_of_another_kind_is_refused_for_every_kind(group: str) -> None:
    kind = KINDS[group]
    with pytest.raises(own.WrongClass, match=f"must name a subclass of raysim\\..*{kind.bases[0].__name__}.*JSONDec"):
        kind.find("json:JSONDecoder")
    with pytest.raises(own.WrongClass, match="whose import raises AttributeError"):
        kind.find("json:Nothing")
    assert kind.find("nothing") is None


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"model": "toys_parts:Slow"}, "model.name: must name a subclass of raysim.models.ModelPart, got 'toys_parts"),
        ({"model": {"name": "torch.nn:Flatten", "personal": ["head"]}}, "model: must be {name: module, module:"),
        ({"model": {"name": "toys_parts:TwoLayers", "widht": 3}}, "model.widht: unknown key (did you mean 'width'?)"),
        ({"model": {"name": "toys_parts:TwoLayers", "width": "a"}}, "model.width: must be an integer, got 'a'"),
        ({"model": "raysim.models:ModelPart"}, "model.name: must name a class that defines build, got 'raysim.models"),
        ({"data__partition": "no:Way"}, "ModuleNotFoundError: No module named 'no'; modules are found in this folder"),
        ({"data": "toys_parts:Points"}, "data.clients: must be given, got nothing"),
        ({"world__delay": {"name": "toys_parts:Slow", "share": 2}}, "world.delay.share: must be less than or equal to"),
        ({"world__delay": toys_parts.Turns()}, "world.delay: must name a subclass of raysim.world.Delay, got"),
        ({"world__delay": {"name": "compute", "flops_per_s": "toys_parts:Coins"}}, "world.delay.flops_per_s.name: mus"),
    ],
)
def test_what_is_wrong_with_a_part_of_ones_own_is_said_by_its_key(change: Raw, expected: str) -> None:
    with pytest.raises(raysim.ScenarioError) as caught:
        raysim.parse_scenario(override(server(), **change))
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("./my_parts.py:Mine", "write my_parts:Mine, say"),
        ("my_parts.py:Mine", "write my_parts:Mine, say"),
        ("/home/me/my_parts.py:Mine", "write my_parts:Mine, say"),
        ("..my_parts:Mine", "write my_parts:Mine, say"),
        (":Mine", "write my_module:Mine, say"),
        ("zzz", "'swift', or a custom class, as module:Class, got 'zzz'"),
    ],
)
def test_a_class_that_is_not_named_as_module_and_class_is_told_how(name: str, advice: str) -> None:
    text = problem(override(server(), algorithm=name))
    assert text.startswith("algorithm.name: must be ")
    assert text.endswith(advice)


def test_what_an_import_raises_is_told_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is in another class than the one that is named, too."""
    classes = "class Mine(FedAvg):\n    beta = 0.5\n\nclass Other(FedAvg):\n    pass\n"
    (tmp_path / "unannotated.py").write_text(f"from raysim.algorithms import FedAvg\n\n{classes}")
    monkeypatch.syspath_prepend(tmp_path)
    text = problem(override(server(), algorithm="unannotated:Other"))
    assert "got 'unannotated:Other', whose import raises PydanticUserError: " in text and "`beta = 0.5`" in text
    assert (
        "; give each key a type, such as `key: float = 0.5`, or write `key: ClassVar = 0.5` for what is no key" in text
    )
    assert text.endswith(f", raised at {tmp_path / 'unannotated.py'}:3")
    assert "\n" not in text
    (tmp_path / "leaves.py").write_text("import sys; sys.exit(0)")
    assert "whose import raises SystemExit: 0" in problem(override(server(), algorithm="leaves:Mine"))
    text = problem(override(server(), algorithm="raysim.algorithms:DPSGD"))
    assert "must name a class whose field is `name: str`, got 'raysim.algorithms:DPSGD'" in text


def test_a_policy_that_picks_wrongly_ends_the_run(tmp_path: Path) -> None:
    raw = override(server(), world__dispatch__policy="toys_parts:Twice")
    expected = "world.dispatch.policy: toys_parts:Twice must pick at most 2 of the idle clients, none of them twice"
    with pytest.raises(raysim.RunFailed, match=expected):
        raysim.run(raw, out=tmp_path, inline=True)


def test_a_staleness_function_that_returns_nothing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one does whose `return` was forgotten; the check that loads the data tells it before a run."""
    method = "    def __call__(self, staleness):\n        1 / (1 + staleness)\n"
    heading = (
        "from raysim.algorithms import StalenessFunction\n\nclass Lost(StalenessFunction):\n    name: str = 'lost'\n\n"
    )
    (tmp_path / "forgetful.py").write_text(heading + method)
    monkeypatch.syspath_prepend(tmp_path)
    YAML().dump(override(nested(), algorithm__staleness="forgetful:Lost"), tmp_path / "own.yaml")
    answer = command("check", tmp_path / "own.yaml", "--data")
    assert answer.exit_code == 2
    text = "algorithm.staleness: forgetful:Lost must return a finite number, got None for a staleness of 0"
    assert text in " ".join(answer.output.split())


class Literally(toys_parts.Slow):
    """A delay whose name cannot be module:Class."""

    name: Any = "literally"


def test_an_object_whose_class_cannot_be_named_is_refused() -> None:
    raw = override(server(), world__delay="none")
    raw["world"]["delay"] = Literally()
    expected = "world.delay: must name a class whose field is `name: str`, got 'test_own_parts:Literally', where it is"
    assert problem(raw).startswith(expected)


with pytest.warns(UserWarning, match="shadows an attribute"):

    class Pairs(DecFedAvg):
        """A peer with a key that would say how it exchanges messages."""

        name: str = "pairs"
        pairs: int = 3


def test_a_key_that_means_something_else_to_the_base_is_refused() -> None:
    expected = "with a key 'pairs'; rename it, or write `pairs: ClassVar = ...` to set what the base means by it"
    assert expected in problem(override(peers(), algorithm="test_own_parts:Pairs"))


def test_an_object_that_does_not_fit_the_rest_is_refused_before_a_run(tmp_path: Path) -> None:
    data, world, run = Quadratic(centers=(1.0, 3.0)), World(dispatch=Dispatch(per_round=2)), RunSettings(rounds=1)
    scenarios = [
        Scenario(name="made", data=data, model=model, algorithm=FedAvg(), world=world, run=run)
        for model in (Vector(), MLP())
    ]
    assert raysim.run(scenarios[0], out=tmp_path / "right", inline=True).vectors()["w"] == pytest.approx([0.2])
    with pytest.raises(raysim.ScenarioError, match=r"mlp takes .*, and quadratic holds functions"):
        raysim.run(scenarios[1], out=tmp_path / "wrong", inline=True)
    assert not (tmp_path / "wrong").exists()


@pytest.fixture
def switching() -> Iterator[None]:
    """Lets threads take turns as often as they can, also while a syntax tree is made."""
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(10)
    gc.callbacks.append(switch)
    yield
    gc.callbacks.remove(switch)
    gc.set_threshold(*threshold)
    sys.setswitchinterval(interval)


def switch(*_: Any) -> None:
    """Runs Python in each collection, where threads may switch."""


@pytest.mark.usefixtures("switching")
def test_threads_may_read_modules_of_ones_own_at_the_same_time() -> None:
    alone = sources_of("toys_parts")
    with ThreadPoolExecutor(4) as threads:
        assert all(found == alone for found in threads.map(sources_of, ["toys_parts"] * 40))
