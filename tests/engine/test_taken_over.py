"""A run on an object store that a process elsewhere takes over, while the first one is only out of breath."""

import json
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from command_line import write
from conftest import digits
from object_store import s3_server
from waiting import until

import raysim
from results.location import location

ELSEWHERE = ["unshare", "--pid", "--fork", "--mount-proc"]  # as in a container: processes have other numbers there
SOON = """
import sys
from contextlib import suppress
from datetime import timedelta
import results.reader
results.reader.SILENT = timedelta(0)  # else it would wait for ten minutes
import raysim
print(raysim.resume(sys.argv[1], inline=True).digest)
"""


def may_unshare() -> bool:
    return bool(shutil.which("unshare")) and subprocess.run([*ELSEWHERE, "true"], capture_output=True).returncode == 0


def _has_checkpoint(folder: Path) -> bool:
    with suppress(FileNotFoundError):  # the first run makes the folder while it is looked into
        return any(folder.glob("*/checkpoint/checkpoint.json"))
    return False


@pytest.mark.chaos
@pytest.mark.skipif(not may_unshare(), reason="needs `unshare`, as root")
def test_the_first_process_writes_no_more_and_the_second_has_the_bits_of_a_run_that_nothing_disturbed(
    tmp_path: Path,
) -> None:
    raw = digits(run__rounds=300, run__checkpoint={"every_rounds": 100, "every_s": None})
    expected = raysim.run(raw, out=tmp_path, inline=True).digest
    with s3_server() as bucket:
        line = [sys.executable, "-m", "raysim", "run", write(tmp_path, raw), "--inline", "--out", f"{bucket}/runs"]
        first = subprocess.Popen(list(map(str, line)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        until(lambda: _has_checkpoint(location(f"{bucket}/runs")), first)
        first.send_signal(signal.SIGSTOP)
        (folder,) = location(f"{bucket}/runs").iterdir()
        command = [*ELSEWHERE, sys.executable, "-c", SOON, str(folder)]
        second = subprocess.run(command, capture_output=True, text=True)
        written = {str(file): file.read_bytes() for file in folder.rglob("*")}
        first.send_signal(signal.SIGCONT)
        printed = first.communicate()[0]
        assert second.stdout.split()[-1:] == [expected], second.stderr
        assert first.returncode == 1 and "has taken the run over" in printed
        assert {str(file): file.read_bytes() for file in folder.rglob("*")} == written
        assert json.loads((folder / "run.json").read_text())["status"] == "finished"
