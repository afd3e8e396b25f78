"""How a process connects to Ray: what a local one is sized for, and what is told where none answers."""

import socket
from typing import Any

import pytest

from actors import MissingResources, Needs


def test_a_local_ray_is_large_enough_for_every_run_to_come(monkeypatch: pytest.MonkeyPatch) -> None:
    from actors import connection
    from actors.placement import Demand

    seen: dict[str, Any] = {}
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(connection.ray, "is_initialized", lambda: False)
    monkeypatch.setattr(connection.ray, "init", lambda **options: seen.update(options))
    connection.connect([Demand({"a": Needs(1.0)}), Demand({f"c{n}": Needs(1.5) for n in range(99)})])
    assert (seen["address"], seen["num_cpus"]) == ("local", 149)


def test_a_local_ray_that_does_not_start_ends_with_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from actors import connection
    from actors.placement import Demand

    def init(**options: Any) -> None:
        raise Exception("The current node timed out during startup.")

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(connection.ray, "is_initialized", lambda: False)
    monkeypatch.setattr(connection.ray, "init", init)
    with pytest.raises(MissingResources, match="Ray did not start on this machine: The current node timed out"):
        connection.connect([Demand({"a": Needs(1.0)})])


def test_no_ray_for_auto_is_told_with_what_starts_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from actors import connection

    def find(*_: Any) -> str:
        raise ConnectionError("Could not find any running Ray instance.")

    monkeypatch.setattr(connection.ray, "is_initialized", lambda: False)
    monkeypatch.setattr(connection, "get_ray_address_from_environment", find)
    with pytest.raises(MissingResources, match="none was found; `ray start --head` starts one, and 'local' stands for"):
        connection.connect([], "auto")


def test_a_cluster_that_is_gone_is_not_waited_for_below_auto(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray keeps the address of a cluster that ended without `ray stop`, and would try it for minutes."""
    from actors import connection

    def init(**options: Any) -> None:
        pytest.fail("it is tried")

    with socket.socket() as taken:  # nobody listens
        taken.bind(("127.0.0.1", 0))
        gone = f"127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setenv("RAY_ADDRESS", gone)
        monkeypatch.setattr(connection.ray, "is_initialized", lambda: False)
        monkeypatch.setattr(connection.ray, "init", init)
        with pytest.raises(MissingResources, match=f"must answer there, got '{gone}'"):
            connection.connect([], "auto")
