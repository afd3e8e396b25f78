"""An S3 server of the tests' own, and an algorithm whose first run is killed."""

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from toys import Counting

from raysim.algorithms import Record


@contextmanager
def s3_server() -> Iterator[str]:
    """Starts a server on loopback, with one bucket; gives its URI. Within the block, the environment leads there."""
    from moto.server import ThreadedMotoServer
    from s3fs import S3FileSystem

    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # else it tells of each request
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    environment = {
        "AWS_ACCESS_KEY_ID": "tests",
        "AWS_SECRET_ACCESS_KEY": "tests",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_CONFIG_FILE": os.devnull,
    }
    try:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            S3FileSystem.clear_instance_cache()  # of a server that has ended
            S3FileSystem().makedirs("bucket", exist_ok=True)  # servers of one process have the same buckets
            yield "s3://bucket"
    finally:
        server.stop()


class KilledOnce(Counting):
    """The process of a client that takes part for the second time is killed, unless that has happened before."""

    name: str = "killed_once"
    mark: str

    def update(self, task: Any, message: Record, state: Record) -> tuple[Record, Record]:
        if int(state["times"]) == 1 and not Path(self.mark).exists():
            Path(self.mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().update(task, message, state)
