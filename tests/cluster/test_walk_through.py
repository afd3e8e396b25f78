"""The commands of docs/clusters.md, from a laptop to a cluster over ssh: up, submit, logs, stop, fetch, down."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT
from machines import HOME, USER, Machine, machines, require_namespaces

import raysim

pytestmark = pytest.mark.cluster

PAGE = (ROOT / "docs" / "clusters.md").read_text(encoding="utf-8")
STEPS = PAGE.partition("## A cluster, step by step\n")[2].partition("\n##")[0]
COMMANDS = "".join(re.findall(r"^```sh\n(.*?)^```", STEPS, re.DOTALL | re.MULTILINE))
MARK = "@@ "


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Machine]]:
    """A laptop with a checkout, in which the file is filled in, and three machines."""
    require_namespaces()
    folder = tmp_path_factory.mktemp("cluster")
    with machines(folder, 4) as (laptop, head, *workers):
        checkout = laptop.home / "raysim"
        ignored = shutil.ignore_patterns(".*", "site", "__pycache__", "*.egg-info")
        shutil.copytree(ROOT, checkout, ignore=ignored)
        shutil.rmtree(checkout / "runs", ignore_errors=True)  # of whoever runs the tests
        shutil.copy(ROOT / ".gitignore", checkout)  # which `ray job submit` obeys
        file = checkout / "deploy" / "on-premise.yaml"
        filled = {
            r"head_ip: \S+": f"head_ip: {head.address}",
            r"worker_ips: \[.*\]": f"worker_ips: [{', '.join(worker.address for worker in workers)}]",
            r"ssh_user: \S+": f"ssh_user: {USER}",
            r"ssh_private_key: \S+": f"ssh_private_key: {folder / 'key'}",
        }
        text = file.read_text()
        for pattern, value in filled.items():
            text, count = re.subn(pattern, value, text)
            assert count == 1
        file.write_text(text)
        yield [laptop, head, *workers]


def script() -> str:
    """The page's commands as one script, which prints before each what it runs."""
    lines = [f"cd {HOME}/raysim && set -e"]
    for command in COMMANDS.replace("\\\n", " ").splitlines():
        words = command.split()
        if words[:2] == ["ray", "dashboard"]:  # in a terminal of its own
            command += " &> dashboard.log & until (< /dev/tcp/localhost/8265) 2> /dev/null; do sleep 0.2; done"
        if words[:3] == ["ray", "job", "stop"]:  # once the run is under way
            lines.append(f"until ls -d /mnt/shared/runs/{words[3]}-*; do sleep 0.2; done")
        lines += [f"echo '{MARK}{' '.join(words[:3])}'", command]
    return "\n".join(lines)


def test_the_page_is_true(cluster: list[Machine], tmp_path: Path) -> None:
    laptop, *nodes = cluster
    with (tmp_path / "printed").open("w") as file:
        line = laptop.command("bash", "-c", script())
        ended = subprocess.run(line, stdout=file, stderr=subprocess.STDOUT, timeout=900, check=False)
    text = (tmp_path / "printed").read_text()
    assert ended.returncode == 0, text
    _, *parts = text.split(MARK)
    printed = {command: text for command, _, text in (part.partition("\n") for part in parts)}

    assert "quickstart  finished" in printed["ray job logs"]
    # Not with the digest that the page shows: another processor may round differently.
    here = raysim.run(ROOT / "scenarios" / "quickstart.yaml", out=tmp_path, inline=True)
    assert here.digest in printed["ray job logs"]
    assert "SUCCEEDED" in printed["ray job list"]
    assert "was stopped" in printed["ray job stop"]
    assert here.digest in printed["raysim show runs/quickstart-*"]
    stopped = json.loads(next((laptop.home / "raysim" / "runs").glob("second-*/run.json")).read_text())
    assert stopped["status"] == "interrupted"
    for node in nodes:  # workers end when they have missed the head for a while
        subprocess.run(node.command("bash", "-c", "while pgrep raylet; do sleep 1; done"), timeout=300, check=True)
