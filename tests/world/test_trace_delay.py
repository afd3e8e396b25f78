"""Delays that follow from a trace of devices, through scenario files, dry and real."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import Raw, Simulate, digits, quadratic

from raysim import ScenarioError, parse_scenario, run

FLOPS = 3 * 2 * (64 * 16 + 16 * 10)  # of a sample, forward and backward, of the MLP 64-16-10


def scenario(path: Path, **delay: object) -> Raw:
    local = {"lr": 0.1, "batch_size": None, "epochs": 2}
    raw = digits(algorithm="fedavg", local=local, run__rounds=3, run__evaluate_every=3)
    raw["world"] = {"dispatch": {"per_round": 6}, "delay": {"name": "trace", "path": str(path), **delay}}
    return raw


def table(folder: Path, columns: dict[str, object]) -> Path:
    path = folder / "devices.csv"
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


def took(simulate: Simulate, raw: Raw) -> pd.DataFrame:
    """The used updates of a run, with how long each took; a dry run has the same times."""
    result, dry = simulate(raw), simulate(raw, "--dry")
    times = ["client", "dispatched_at", "arrived_at"]
    assert result.pandas("updates")[times].equals(dry.pandas("updates")[times])
    used = result.pandas("updates").query("status == 'used'")
    assert len(used) == 18
    return used.assign(took=used.arrived_at - used.dispatched_at)


def test_flops_bytes_and_latency_take_their_time(simulate: Simulate, tmp_path: Path) -> None:
    speeds = 1e6 * (1 + np.arange(30))
    columns = {"client": range(30), "flops_per_s": speeds, "up_bytes_per_s": 1e4, "down_bytes_per_s": 5e4}
    used = took(simulate, scenario(table(tmp_path, columns | {"latency_s": 0.25})))
    assert (used.samples_seen == 2 * used.samples).all()
    training = FLOPS * used.samples_seen / speeds[used.client]
    expected = 0.25 + training + used.up_bytes / 1e4 + used.down_bytes / 5e4
    np.testing.assert_allclose(used.took, expected, rtol=1e-9)


def test_what_has_no_column_takes_no_time(simulate: Simulate, tmp_path: Path) -> None:
    used = took(simulate, scenario(table(tmp_path, {"client": range(30), "seconds_per_sample": [0.5] * 30})))
    np.testing.assert_allclose(used.took, 0.5 * used.samples_seen, rtol=1e-9)


def test_fedscales_devices_take_what_fedscale_says(simulate: Simulate, tmp_path: Path) -> None:
    """Three forward passes of so many milliseconds for each sample, and messages in kilobits of 1024 bits."""
    forward, kbps = np.linspace(10, 300, 30), np.linspace(100, 9000, 30)
    columns = {"client": range(30), "computation": forward, "communication": kbps}
    used = took(simulate, scenario(table(tmp_path, columns)))
    messages = (used.up_bytes + used.down_bytes) * 8 / 1024 / kbps[used.client]
    np.testing.assert_allclose(used.took, 3 * forward[used.client] / 1000 * used.samples_seen + messages, rtol=1e-9)


def test_devices_are_taken_in_order(simulate: Simulate, tmp_path: Path) -> None:
    path = table(tmp_path, {"device": [f"phone {n}" for n in range(30)], "latency_s": range(1, 31)})
    used = took(simulate, scenario(path, assign="in_order"))
    assert (used.took.round(9) == used.client + 1).all()


def test_drawn_devices_stay_with_their_clients(simulate: Simulate, tmp_path: Path) -> None:
    raw = scenario(table(tmp_path, {"latency_s": [1.0, 2.0, 3.0]})) | {"run": {"rounds": 30}}
    updates = simulate(raw, "--dry").pandas("updates").query("status == 'used'")
    delays = (updates.arrived_at - updates.dispatched_at).round(9).groupby(updates.client)
    assert (delays.nunique() == 1).all()
    assert set(delays.first()) == {1.0, 2.0, 3.0}
    other = simulate(raw | {"seed": 1}, "--dry").pandas("updates").query("status == 'used'")
    again = (other.arrived_at - other.dispatched_at).round(9).groupby(other.client).first()
    assert not again.equals(delays.first().reindex(again.index))


def test_parquet_says_the_same_as_csv(simulate: Simulate, tmp_path: Path) -> None:
    path = table(tmp_path, {"client": range(30), "latency_s": np.linspace(0.1, 3, 30)})
    pd.read_csv(path).to_parquet(tmp_path / "devices.parquet")
    runs = [simulate(scenario(file), "--dry") for file in (path, tmp_path / "devices.parquet")]
    columns = ["client", "dispatched_at", "arrived_at"]
    assert runs[0].pandas("updates")[columns].equals(runs[1].pandas("updates")[columns])


def test_peers_train_at_the_speed_of_their_devices(simulate: Simulate, tmp_path: Path) -> None:
    raw = digits(algorithm="d_psgd", topology="ring", run__rounds=2, data__clients=4, local__steps=1)
    raw["data"]["partition"] = "iid"
    raw["world"] = {
        "delay": {"name": "trace", "path": str(table(tmp_path, {"client": range(4), "latency_s": range(4)}))}
    }
    first = simulate(raw).pandas("updates").query("version == 0")
    assert first.sort_values("client").arrived_at.tolist() == [0.0, 1.0, 2.0, 3.0]


WRONG = {
    "": "must hold at least one row",
    "latency_s\n": "must hold at least one row",
    "latency\n1\n": "must have columns that are known, .* got latency; rename",
    "client\n0\n1\n": "must have one of the columns flops_per_s",
    "latency_s,computation\n1,1\n": "must have columns of one kind, got latency_s beside FedScale's computation",
    "flops_per_s,seconds_per_sample\n1,1\n": "must say in one way how fast a device trains",
    "latency_s\n1\n-2\n": "devices.csv, line 3: latency_s must be a number of at least 0, got '-2'",
    "flops_per_s\n\n1\n0\n": "devices.csv, line 4: flops_per_s must be a number above 0, got '0'",
    "flops_per_s\n1\nfast\n": "line 3: flops_per_s must be a number above 0, got 'fast'",
    "flops_per_s\ninf\n": "line 2: flops_per_s must be a number above 0, got 'inf'",
    "client,latency_s\n0,1\n1\n": "devices.csv, line 3: must have 2 values, for client, latency_s, got 1",
    "client,latency_s\n0,1\n0,2\n": "line 3: client must be there once only, got 0 in line 2 too",
    "client,latency_s\n0,1\n1.5,2\n": "line 3: client must be a client's number, 0, 1, ..., got '1.5'",
    "client,latency_s\n0,1\n": r"must hold a device for each of 2 clients, got none for 1 of them, such as \[1\]",
    "client,client\n0,1\n": "must have each column once, got client more than once",
}


@pytest.mark.parametrize("content", WRONG)
def test_a_wrong_file_is_told_when_the_scenario_is_checked(content: str, tmp_path: Path) -> None:
    (tmp_path / "devices.csv").write_text(content)
    delay = {"name": "trace", "path": str(tmp_path / "devices.csv")}
    raw = quadratic([0.0, 1.0], "fedbuff", {"dispatch": {"per_round": 1}, "delay": delay}, 2)
    assert_refused(raw, WRONG[content])


def assert_refused(raw: Raw, message: str) -> None:
    with pytest.raises(Exception, match="world.delay: .*" + message):
        parse_scenario(raw)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken.parquet").write_text("client,latency_s")
    (tmp_path / "latin.csv").write_bytes(b"device,latency_s\nt\xe9l\xe9phone,1\n")
    world = {"dispatch": {"per_round": 1}}
    for name, text in {
        "none.csv": "none.csv: cannot be read: No such file or directory; correct the path",
        "broken.parquet": "broken.parquet: must be a Parquet file",
        "latin.csv": "latin.csv: must be CSV in UTF-8",
    }.items():
        delay = {"name": "trace", "path": str(tmp_path / name)}
        assert_refused(quadratic([0.0], "fedbuff", world | {"delay": delay}, 2), text)


def test_paths_start_at_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table(tmp_path, {"latency_s": [1.0]})
    monkeypatch.chdir(tmp_path)
    assert parse_scenario(scenario(Path("devices.csv"))).world.delay.least == 1.0


def test_a_check_opens_ordinary_files_only_and_fetches_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    def with_file(path: str) -> Raw:
        return digits(world={"dispatch": {"per_round": 4}, "delay": {"name": "trace", "path": path}})

    for path in (str(tmp_path / "pipe"), "/dev/zero"):
        with pytest.raises(ScenarioError, match="it is not a regular file"):
            parse_scenario(with_file(path))
    remote = parse_scenario(with_file("memory://nowhere/trace.csv"))
    with pytest.raises(ScenarioError, match=r"nowhere/trace\.csv: cannot be read"):
        run(remote, inline=True, out=tmp_path)
