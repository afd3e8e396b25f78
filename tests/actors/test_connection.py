"""How a process connects to Ray: what a local one is sized for, and what is told where none answers."""

import socket
import stat
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from actors import MissingResources, Needs


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """With what Ray was asked to start or connect, in a process that is not connected to any; {} if it was not."""
    from actors import connection

    found: dict[str, Any] = {}
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(connection.ray, "is_initialized", lambda: False)
    monkeypatch.setattr(connection.ray, "init", lambda **options: found.update(options))
    return found


def connect(actors: dict[str, float], address: str | None = None) -> None:
    """actors: the CPUs that each needs."""
    from actors import connection
    from actors.placement import Demand

    connection.connect([Demand({}), Demand({name: Needs(cpus) for name, cpus in actors.items()})], address)


def test_a_local_ray_is_large_enough_for_every_run_to_come(asked: dict[str, Any]) -> None:
    connect({f"c{n}": 15.0 for n in range(9)})
    assert (asked["address"], asked["num_cpus"]) == ("local", 135)


@pytest.mark.parametrize(("address", "has_one"), [(None, False), ("local", True)])
def test_a_local_ray_has_a_dashboard_if_it_is_asked_for(
    asked: dict[str, Any], address: str | None, has_one: bool
) -> None:
    connect({"a": 1.0}, address)
    assert asked["include_dashboard"] is has_one


def test_more_actors_than_the_machine_has_memory_for_are_refused(asked: dict[str, Any]) -> None:
    with pytest.raises(MissingResources, match=r"must have memory for 100000 actors of at least 0\.3 GB, got \d+ GB"):
        connect({f"c{number}": 1.0 for number in range(100_000)})
    assert not asked


def test_a_local_ray_that_does_not_start_ends_with_a_line(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def init(**options: Any) -> None:
        raise Exception("The current node timed out during startup.")

    monkeypatch.setattr("actors.connection.ray.init", init)
    with pytest.raises(MissingResources, match="Ray did not start on this machine: The current node timed out"):
        connect({"a": 1.0})


def test_no_ray_for_auto_is_told_with_what_starts_one(asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def find(*_: Any) -> str:
        raise ConnectionError("Could not find any running Ray instance.")

    monkeypatch.setattr("actors.connection.get_ray_address_from_environment", find)
    with pytest.raises(MissingResources, match="none was found; `ray start --head` starts one, and 'local' starts one"):
        connect({}, "auto")


def test_a_cluster_that_is_gone_is_not_waited_for_below_auto(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray keeps the address of a cluster that ended without `ray stop`, and would try it for minutes."""
    with socket.socket() as taken:  # nobody listens
        taken.bind(("127.0.0.1", 0))
        gone = f"127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setenv("RAY_ADDRESS", gone)
        with pytest.raises(MissingResources, match=f"must answer there, got '{gone}'"):
            connect({}, "auto")
    assert not asked


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n"], ids=["silent", "web"])
def test_what_accepts_and_is_no_ray_is_not_waited_for(
    answer: bytes, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actors.connection.PROBE_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with server.accept()[0] as guest, suppress(ConnectionError):
                guest.sendall(answer)
                while guest.recv(99):  # until it leaves
                    pass

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(MissingResources, match="a Ray cluster must answer there"):
            connect({}, f"127.0.0.1:{server.getsockname()[1]}")
        thread.join()
    assert not asked


@pytest.mark.parametrize("there", [True, False])
def test_the_token_is_for_its_owner_only(there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from actors.connection import keep_token_private

    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    token = tmp_path / ".ray" / "auth_token"
    if there:
        token.parent.mkdir()
        token.write_text("known")
        token.chmod(0o644)
    keep_token_private(make=False)
    assert token.exists() == there
    keep_token_private(make=True)
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    assert (token.read_text() == "known") == there
    assert len(token.read_text()) == 64 or there
    assert [file.name for file in token.parent.iterdir()] == ["auth_token"]
