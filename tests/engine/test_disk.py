"""Full disks and folders that cannot be written: one message, and what was written stays readable."""

import errno
import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from command_line import process, write
from conftest import digits
from stopping import stop_after

import raysim
from raysim.engine.progress import Progress
from results import CannotWrite, open_run
from results.report.page import Report


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full after ten files of tables."""
    real, written = pq.write_table, []

    def write_table(table: Any, where: Path, **options: Any) -> None:
        written.append(where)
        if len(written) > 10:
            where.write_bytes(b"half a file")
            raise OSError(errno.ENOSPC, "Error writing bytes to file")
        real(table, where, **options)

    monkeypatch.setattr(pq, "write_table", write_table)
    monkeypatch.setattr("results.writer.BUFFER_ROWS", 20)


def test_a_full_disk_fails_the_run_with_one_message(full: None, tmp_path: Path) -> None:
    with pytest.raises(raysim.RunFailed) as caught:
        raysim.run(raysim.parse_scenario(digits(run__rounds=30)), out=tmp_path, inline=True)
    folder = caught.value.folder
    assert folder is not None and caught.value.where == "writing" and caught.value.traceback == ""
    told = str(caught.value)
    assert told.startswith(f"writing: {folder}/") and "cannot be written (No space left on device, " in told
    assert "bytes were free); free some space there" in told and told.endswith(f"`raysim resume {folder}` continues it")
    assert caught.value.__suppress_context__
    run = open_run(folder)
    assert run.info["status"] == "failed" and "No space left on device" in run.info["error"]
    assert 0 < len(run.table("updates")) < 200
    assert not list(folder.rglob(".*.tmp"))


def test_a_disk_that_is_full_when_a_run_goes_on_fails_it_with_one_message(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It says so in run.json, leaves nothing half written, and goes on once there is room."""
    scenario = raysim.parse_scenario(digits(run__rounds=10))
    folder = raysim.run(scenario, out=tmp_path, inline=True, observers=[stop_after(5)]).folder
    there = len(open_run(folder).table("updates"))

    def no_room(file: Path, *_: object, **__: object) -> None:
        file.write_bytes(b"half a file")
        raise OSError(errno.ENOSPC, "Error writing bytes to file")

    with monkeypatch.context() as full, pytest.raises(raysim.RunFailed) as caught:
        full.setattr("results.tables.pq.ParquetWriter", no_room)
        raysim.resume(folder, inline=True)
    assert caught.value.where == "writing" and caught.value.traceback == ""
    assert "No space left on device" in str(caught.value)
    run = open_run(folder)
    assert run.status == "failed" and len(run.table("updates")) == there
    assert not list(folder.rglob("*.tmp"))
    expected = raysim.run(scenario, out=tmp_path / "whole", inline=True)
    assert raysim.resume(folder, inline=True).digest == expected.digest


@pytest.mark.parametrize("what", ["raysim.engine.checkpoint.write_durably", "results.writer.write_part"])
@pytest.mark.parametrize(
    ("end", "status"), [(KeyboardInterrupt(), "interrupted"), (raysim.StopRun("enough"), "stopped")]
)
def test_a_run_that_ends_early_tells_that_there_is_no_room_for_its_end(
    end: BaseException,
    status: str,
    what: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    """In a warning and in run.json: for its last checkpoint, or for its last rows."""

    def no_room(*_: object, **__: object) -> None:
        raise CannotWrite(tmp_path, "No space left on device", True)

    def stop(progress: Progress) -> None:
        if progress.round >= 5:
            monkeypatch.setattr(what, no_room)
            raise end

    with suppress(KeyboardInterrupt):
        raysim.run(raysim.parse_scenario(digits(run__rounds=10)), out=tmp_path, inline=True, observers=[stop])
    (folder,) = tmp_path.iterdir()
    info = open_run(folder).info
    assert info["status"] == status and "No space left on device" in info["error"]
    (warning,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warning.startswith(f"{folder.name}: {tmp_path}: cannot be written (No space left on device, ")
    assert warning.endswith(f"what was written before is readable, and `raysim resume {folder}` continues it")


def test_a_page_that_will_not_fit_leaves_the_old_one(tmp_path: Path) -> None:
    page, link = tmp_path / "page.html", tmp_path / "link.html"
    page.write_text("old")
    link.symlink_to(page)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(CannotWrite, match="File too large"):
            Report("x" * 10_000, ()).write(link)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert page.read_text() == "old" and sorted(tmp_path.iterdir()) == [link, page]
    Report("new", ()).write(link)
    assert page.read_text() == "new" and link.is_symlink()


def test_where_parts_cannot_be_merged_the_run_has_them_all_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    scenario = raysim.parse_scenario(digits(run__rounds=30))
    expected = raysim.run(scenario, out=tmp_path / "a", inline=True)

    def no_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, "Error writing bytes to file")

    monkeypatch.setattr("results.writer.BUFFER_ROWS", 20)
    monkeypatch.setattr("results.tables._groups", no_room)
    result = raysim.run(scenario, out=tmp_path / "b", inline=True)
    assert result.digest == expected.digest
    assert len(result.run.files("updates")) > 1
    rows, whole = result.table("updates"), expected.table("updates")
    assert rows["client"].to_pylist() == whole["client"].to_pylist()
    assert not list(result.folder.rglob("*.tmp"))


def test_a_model_that_will_not_fit_is_refused_when_the_run_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("results.disk.free", lambda path: 1 << 20)
    raw = digits(model={"name": "mlp", "hidden": [5000]})
    with pytest.raises(raysim.RunFailed, match=r"writing: .*it will need 1,500,040 bytes at least, 1,048,576 bytes"):
        raysim.run(raysim.parse_scenario(raw), out=tmp_path, inline=True)
    monkeypatch.setattr("results.disk.free", lambda path: 1000)
    with pytest.raises(CannotWrite, match="it will need 1,048,576 bytes at least, 1,000 bytes were free"):
        raysim.run(raysim.parse_scenario(raw), out=tmp_path / "none", inline=True)
    assert not (tmp_path / "none").exists()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    place = tmp_path / "small"
    place.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "none", place], capture_output=True, check=False
    ).returncode:
        pytest.skip("needs the right to mount")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


@pytest.mark.chaos
def test_a_small_file_system_fills_up(small: Path, tmp_path: Path) -> None:
    path = write(tmp_path, digits(run__rounds=10**6, run__evaluate_every=10**6))
    (small / "ballast").write_bytes(os.urandom(900_000))
    ended = process("run", path, "--inline", "--out", small)
    assert (ended.returncode, "Traceback" in ended.stderr) == (1, False)
    last = " ".join(ended.stderr.splitlines()[-1:])
    assert last.startswith(f"The run failed in writing: {small}/") and "No space left on device" in last
    (folder,) = small.glob("digits-*")
    run = open_run(folder)
    assert run.standing in ("failed", "killed")
    assert len(run.table("updates")) > 0
