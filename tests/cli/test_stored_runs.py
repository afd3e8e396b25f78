"""Runs whose folders are on an object store: all commands take their URIs, and the numbers are those on a disk."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import command, process, write
from conftest import Raw, digits
from object_store import s3_server

import raysim
from raysim import CannotGoOn
from results import CannotWrite, UnknownLocation, this_process, write_json

OWN = {"name": "object_store:KilledOnce"}


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with s3_server() as uri:
        yield uri


def only_run(out: str) -> raysim.Result:
    (run,) = raysim.load(out).runs
    return raysim.Result(run.folder)


def test_a_run_on_an_object_store_is_the_run_on_a_disk(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file, out = write(tmp_path, digits(run__checkpoint__every_rounds=2)), f"{bucket}/same"
    assert f"results in {out}/digits-" in command("run", file, "--inline", "--out", out).stdout
    command("run", file, "--inline", "--out", (tmp_path / "here").as_uri())
    far, near = only_run(out), only_run(str(tmp_path / "here"))
    assert far.digest == near.digest
    measured = ["run", "seconds"]
    assert far.pandas("updates").drop(columns=measured).equals(near.pandas("updates").drop(columns=measured))
    assert str(far.module()) == str(near.module())
    names = {file.relative_to(near.folder).as_posix() for file in near.folder.rglob("*") if file.is_file()}
    assert {file.path.partition(f"{far.run.id}/")[2] for file in far.folder.rglob("*.*")} == names
    assert not list(tmp_path.glob("s3*"))

    assert far.digest in command("show", far.folder).stdout
    both = command("compare", out, tmp_path / "here", "--by", "seed")
    assert "has the same scenario and seed" in both.stderr
    again = command("run", file, "--inline", "--out", out, "--resume")
    assert str(far.folder) in again.stdout
    assert len(raysim.load(out)) == 1


@pytest.mark.chaos
def test_a_killed_run_goes_on_with_the_bits_of_one_that_was_not(bucket: str, tmp_path: Path) -> None:
    raw = digits(algorithm={**OWN, "mark": str(tmp_path / "mark")}, run__checkpoint__every_rounds=1)
    file, out = write(tmp_path, raw), f"{bucket}/killed"
    assert process("run", file, "--inline", "--out", out).returncode == -9
    left = only_run(out)
    assert left.run.standing == "killed"
    answer = command("resume", left.folder, "--inline")
    assert answer.exit_code == 0, answer.output
    assert "continues from its beginning" not in answer.stdout
    after = only_run(out)
    whole = raysim.run(raysim.parse_scenario(raw), out=tmp_path / "whole", inline=True)
    assert after.digest == whole.digest
    assert after.info["resumed"][0]["version"] >= 1
    assert (after.folder / "code" / "object_store.py").exists()


@pytest.mark.slow
def test_a_fork_is_that_of_the_run_on_a_disk(bucket: str, tmp_path: Path) -> None:
    raw = digits(run__rounds=20, run__checkpoint={"every_rounds": 8, "at_end": False})
    near = raysim.run(raysim.parse_scenario(raw), out=tmp_path / "near", inline=True)
    far = raysim.run(raysim.parse_scenario(raw), out=f"{bucket}/forked", inline=True)
    change = ["algorithm.server_lr=0.5"]
    forks = [
        raysim.fork(source.folder, 10, change, out=out, inline=True)
        for source, out in ((near, tmp_path / "a"), (far, f"{bucket}/b"), (far, tmp_path / "c"), (near, f"{bucket}/d"))
    ]
    assert len({fork.digest for fork in forks}) == 1
    assert all("resumed" in fork.info and fork.info["forked_from"]["version"] == 10 for fork in forks)
    assert forks[0].digest != near.digest


@pytest.mark.usefixtures("here")
def test_a_sweep_finds_what_it_has_done_before(bucket: str, tmp_path: Path) -> None:
    words = ["sweep", write(tmp_path, digits(run__rounds=1)), "--inline", "--seeds", "3", "--out", f"{bucket}/swept"]
    assert "1 finished" in command(*words).stdout
    assert "1 done before" in command(*words).stdout
    assert [run.info["seed"] for run in raysim.load(f"{bucket}/swept").runs] == [3]


@pytest.mark.parametrize(
    ("out", "why"),
    [
        ("s4://bucket/runs", "must be a path, or a URI with a scheme that is known, such as s3, gs or file, got 's4'"),
        ("gs://bucket/runs", "needs a library for gs:// that is not installed; pip install 'raysim-fl[gcs]'"),
        ("s3:/bucket/runs", "a URI must have two slashes after s3:, got one; write s3://..."),
        ("file://runs", "must be file:/// and the whole path"),
        ("http://localhost/runs", "http is not an object store"),
        ("s3://no-such-bucket/runs", "The specified bucket does not exist"),
    ],
)
def test_a_uri_that_leads_nowhere_is_refused_before_anything_starts(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str, why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    file = write(tmp_path, digits())
    for words in (["run", file], ["run", file, "--inline"], ["sweep", file, "--inline"]):
        answer = command(*words, "--out", out)
        assert answer.exit_code == 2
        assert "".join(why.split()) in "".join(answer.stderr.replace("│", " ").split())
    with pytest.raises((UnknownLocation, CannotWrite), match=out):
        raysim.run(raysim.parse_scenario(digits()), out=out, inline=True)
    assert [path.name for path in tmp_path.iterdir()] == ["scenario.yaml"]


def test_check_refuses_the_uri_of_data_that_leads_nowhere(tmp_path: Path) -> None:
    data: Raw = {"name": "parquet", "train": ["s4://b/train-*.parquet"], "test": ["s3://b/t.parquet"], "image": "image"}
    file = write(tmp_path, digits(data={**data, "clients": 2, "partition": "iid"}))
    for words in (["check", file], ["run", file, "--inline", "--out", tmp_path / "runs"]):
        answer = command(*words)
        assert answer.exit_code == 2
        assert "data.train.0: s4://b/train-*.parquet: must be a path, or a URI with a scheme" in answer.stderr
        assert "data.test" not in answer.stderr
    assert not (tmp_path / "runs").exists()


def test_a_run_that_another_process_writes_is_not_resumed(bucket: str) -> None:
    raw = digits(run__rounds=1, run__evaluate_every=1)
    folder = raysim.run(raysim.parse_scenario(raw), out=f"{bucket}/held", inline=True).folder
    info = json.loads((folder / "run.json").read_text())
    gone = {**this_process(), "pid": 2**22 + 1}  # no process has such a number
    for holder in (this_process(), {**gone, "boot": "another"}):
        write_json(folder, info | {"status": "running", "holder": holder})
        with pytest.raises(CannotGoOn, match="must be a run that has ended, but is running"):
            raysim.resume(folder, ["run.rounds=2"], inline=True)
    write_json(folder, info | {"status": "running", "holder": gone})
    assert raysim.resume(folder, ["run.rounds=2"], inline=True).info["totals"]["rounds"] == 2
