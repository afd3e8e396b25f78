"""What tests share: running a scenario as a user would, and one Ray session for those that need it."""

import copy
import functools
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer.testing

import raysim
from raysim.runs import origin
from raysim.scenario.load import assign, override_all

if TYPE_CHECKING:
    from torch import Tensor, nn

    from raysim.local.server_task import ServerTask

ROOT = Path(__file__).parents[1]
SHIPPED = sorted((ROOT / "scenarios").rglob("*.yaml"))
# What processes that tests start must find: the packages and the tests' own algorithms. The root comes first, or else
# `tests/actors` and `tests/results` would be taken for the packages of these names.
PYTHONPATH = os.pathsep.join(map(str, (ROOT, ROOT / "tests" / "support", ROOT / "tests")))
os.environ.setdefault("PYTHONPATH", str(ROOT))  # for the processes that tests start from other folders
os.environ.setdefault("OMP_NUM_THREADS", "1")  # else each of the test processes keeps all cores busy with waiting
os.environ["RAYSIM_CACHE"] = tempfile.mkdtemp(prefix="raysim-cache-")  # not that of whoever runs the tests

# The runner makes all commands anew for each call, which takes a quarter of the time of a run of a few rounds.
typer.testing._get_command = functools.cache(typer.testing._get_command)

# Each run asks git for the commit, and waits until the disk has its checkpoints. Neither is what most tests are about.
os.fsync = lambda file: None
_asked, _answered = origin._git, functools.cache(origin._git)
origin._git = lambda *words: (_answered if Path.cwd() == ROOT else _asked)(*words)

# Tests interrupt and hang up processes, which do not heed it if `nohup` or a shell's `&` left them ignoring signals.
# With a handler, not the default, the tests themselves live on when they are hung up; it ends where a process starts.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, lambda *_: None)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

Raw = dict[str, Any]
Simulate = Callable[..., raysim.Result]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--once", action="store_true", help="each test once, with the first of its parameters")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Some marks mean that a test is slow, too. Those that share the session on Ray are given to one process."""
    if any(item.get_closest_marker(name) for name in ("chaos", "cluster", "docs", "long", "package")):
        item.add_marker("slow")
    if "ray_session" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.xdist_group("ray"))


@pytest.hookimpl(trylast=True)  # of those that -m and -k have left
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With --once, keeps one item of each test."""
    if config.getoption("once"):
        items[:] = {item.nodeid.partition("[")[0]: item for item in reversed(items)}.values()
        items.reverse()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Gives all tests of a file to one process, which makes once what they share. Slow ones are few and long."""
    from xdist.scheduler import LoadGroupScheduling

    class ByFile(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            group: str = super()._split_scope(nodeid)
            return group if group != nodeid else nodeid.partition("::")[0]

    return ByFile(config, log) if config.option.markexpr.startswith("not ") else None


@pytest.fixture
def simulate(tmp_path: Path) -> Simulate:
    """Runs a scenario in this process, with options that `raysim run` has: --dry, and any number of --set."""

    def run(raw: Raw, *options: str) -> raysim.Result:
        given = copy.deepcopy(raw)
        overrides = [text for option, text in pairwise(options) if option == "--set"]
        assert len(options) == 2 * len(overrides) + ("--dry" in options)
        assert override_all(given, overrides) == []
        result = raysim.run(given, out=tmp_path / "runs", inline=True, dry="--dry" in options, progress=False)
        assert result.run.status != "diverged"
        return result

    return run


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps carry out their runs in this process, one at a time: starting another takes longer than a small run."""
    monkeypatch.setattr("raysim.sweep.slots.Child", NoChild)


class NoChild:
    """What `actors.Child` is, without a process: calls are made here."""

    _one_at_a_time = threading.Lock()

    def __init__(self, handler: Callable[..., Any]) -> None:
        self._handler = handler

    def call(self, order: Any, tell: Callable[[Any], Any]) -> Any:
        with self._one_at_a_time:
            return self._handler(order, tell)

    def interrupt(self) -> None:
        """Does nothing: runs end at their next progress."""

    def close(self) -> None:
        """Does nothing: there is nothing to end."""


def forget(stem: str) -> None:
    """Lets the next import of modules whose names begin so read their files, as in a new process."""
    for name in [name for name in sys.modules if name.startswith(stem)]:
        del sys.modules[name]


@pytest.fixture(scope="session")
def ray_session() -> Iterator[None]:
    """A local Ray for the whole session, whose workers find the tests' own algorithms."""
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(
        address="local",
        namespace="raysim",
        num_cpus=8,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": PYTHONPATH}},
    )
    # Those of servers and peers, with one client actor and with two, all wait: to start some takes ten times a test.
    with pytest.MonkeyPatch.context() as patch, raysim.session():
        patch.setattr("actors.session.MOST", 5)
        yield
    ray.shutdown()


@pytest.fixture
def ray_room(ray_session: None) -> None:
    """The Ray of the session without actors that wait for a next run, and hold its CPUs until then."""
    raysim.shutdown()


@pytest.fixture
def ray_pool(ray_room: None) -> Iterator[Any]:
    """Outside a scheduler actor: this process is the one that submits."""
    from actors.actors import Actors
    from actors.cluster import RayPool
    from actors.placement import Placement

    pool = RayPool(Actors(f"test-{time.time_ns()}", Placement()))
    yield pool
    pool.close()


def override(raw: Raw, **changes: Any) -> Raw:
    """A scenario with other values: `data__clients=30` sets `data.clients`, as `--set data.clients=30` does."""
    changed = copy.deepcopy(raw)
    for path, value in changes.items():
        problem = assign(changed, path.replace("__", "."), copy.deepcopy(value), "override")
        assert problem is None, problem
    return changed


def quadratic(centers: list[Any], algorithm: Any, world: Raw, rounds: int, start: float = 0.0, **more: Any) -> Raw:
    """A scenario that can be followed with pencil and paper: full-batch steps with lr 1 on |x - a|^2 / 2."""
    raw = {
        "name": "paper",
        "data": {"name": "quadratic", "centers": centers},
        "model": {"name": "vector", "start": start},
        "algorithm": algorithm,
        "local": {"lr": 1.0, "batch_size": None},
        "world": world,
        "run": {"rounds": rounds},
    }
    return override(raw, **more)


def digits(**more: Any) -> Raw:
    """A small scenario on real data, with delays."""
    raw = {
        "name": "digits",
        "data": {"name": "digits", "clients": 30, "partition": {"name": "dirichlet_clients", "alpha": 0.5}},
        "model": {"name": "mlp", "hidden": [16]},
        "algorithm": "fedbuff",
        "local": {"lr": 0.1, "batch_size": 16},
        "world": {"dispatch": {"per_round": 6}, "delay": {"name": "half_normal", "sigma": 3}},
        "run": {"rounds": 8, "evaluate_every": 4},
        "resources": {"chunk": 3},
    }
    return override(raw, **more)


def computed(flops: float, up: float, down: float, sigma: float | None = None, **more: Any) -> Raw:
    """A delay that follows work and bytes, at these rates per second; sigma: of rates that differ among clients."""
    rates: Raw = {"flops_per_s": flops, "up_bytes_per_s": up, "down_bytes_per_s": down}
    for key, value in rates.items():
        differs = {"name": "log_normal", "median": value, "sigma": sigma}
        rates[key] = {"name": "constant", "value": value} if sigma is None else differs
    return {"name": "compute", **rates, **more}


def server_task(
    module: "nn.Module",
    loss: str,
    x: "Tensor",
    y: "Tensor",
    *,
    version: int = 1,
    shards: int = 1,
    in_domain: bool = True,
    **local: Any,
) -> "ServerTask":
    """A server at work on these samples, alone; where it trains as `local:` says, on all of them at once."""
    import torch

    from actors import Gang
    from raysim.algorithms import Population
    from raysim.local import Local
    from raysim.local.net import Net
    from raysim.local.samples import Samples
    from raysim.local.server_task import Company, ServerTask
    from raysim.parts.rng import SERVER_ID

    net, settings = Net(module, (), loss, torch.device("cpu")), Local(batch_size=None, **local)
    return ServerTask(
        net,
        net.model(),
        Samples.of(x, y),
        settings,
        Population(4, 4),
        (0, SERVER_ID, version),
        labels=y,
        classes=int(y.max()) + 1,
        in_domain=in_domain,
        company=Company(Gang(), shards),
    )
