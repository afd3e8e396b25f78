"""A Ray cluster of several nodes on this machine, whose nodes can be killed as a power cut would."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from command_line import write
from conftest import PYTHONPATH, Raw

QUICK = {  # the head sees within seconds that a node is gone
    "health_check_initial_delay_ms": 500,
    "health_check_period_ms": 1000,
    "health_check_timeout_ms": 5000,
    "health_check_failure_threshold": 4,
}


class Nodes:
    """The nodes of a cluster. The first is the head, on which runs are started."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self._called: list[subprocess.Popen[str]] = []

    def add(self, cpus: int, **options: Any) -> Any:
        return self._cluster.add_node(num_cpus=cpus, **options)

    def kill(self, node: Any) -> None:
        self._cluster.remove_node(node, allow_graceful=False)

    def kill_head(self) -> None:
        """Kills the head, with the cluster's memory of where everything is."""
        self._cluster.remove_node(self._cluster.head_node, allow_graceful=False)

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    def start(self, folder: Path, raw: Raw) -> subprocess.Popen[str]:
        """Starts a run on the cluster, as a user on the head would."""
        return self.call("run", write(folder, raw), "--out", folder / "runs", "--address", self.address)

    def call(self, *line: object) -> subprocess.Popen[str]:
        """Calls raysim on the head."""
        called = subprocess.Popen(
            [sys.executable, "-m", "raysim", *map(str, line)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONPATH": PYTHONPATH},
        )
        self._called.append(called)
        return called

    def shutdown(self) -> None:
        """Ends all nodes, and what a failed test has left running: it would be told as a later test's fault."""
        for called in self._called:
            with called:  # closes its output and waits
                called.kill()
        self._cluster.shutdown()


@contextmanager
def several_nodes(head_cpus: int, **options: Any) -> Iterator[Nodes]:
    """Starts the head of a cluster, and ends all nodes after the block."""
    from ray.cluster_utils import Cluster

    with tempfile.TemporaryDirectory(prefix="nodes-", dir="/tmp", ignore_cleanup_errors=True) as temporary:
        head = {"num_cpus": head_cpus, "include_dashboard": False, "_system_config": QUICK, "temp_dir": temporary}
        head |= {"dashboard_port": None, **options}  # any: Ray would forget a socket if the usual one were taken
        cluster = Cluster(initialize_head=True, head_node_args=head)
        nodes = Nodes(cluster)
        try:
            yield nodes
        finally:
            nodes.shutdown()
