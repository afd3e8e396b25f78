"""Connects this process to a Ray cluster, or starts a local one."""

import math
import os
import secrets
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import ray
from ray._common.utils import get_system_memory
from ray._private.services import get_ray_address_from_environment
from ray.exceptions import RayError

from actors.placement import Demand, started_here
from actors.pool import MissingResources

NAMESPACE = "raysim"
ACTOR_BYTES = 0.3e9  # what an actor with PyTorch takes before it has done anything
PROBE_S = 5.0  # how long a cluster may take to answer at its address
_SETTINGS = b"\x04"  # the kind of frame with which both sides of HTTP/2, on which Ray's gRPC is built, begin
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0" + _SETTINGS + b"\0\0\0\0\0"


def connect(demands: Sequence[Demand], address: str | None = None, at_once: int = 1) -> None:
    """Connects this process to Ray, unless it is connected already.

    address: the address of a cluster, or "local" for a new local Ray with its dashboard; by default the address in
    RAY_ADDRESS, or else a new local Ray without a dashboard. demands: what the coming runs ask for; a local Ray gets
    enough CPUs for those that ask for most. at_once: how many runs are carried out at a time. Raises MissingResources
    if no cluster answers, if a local Ray does not start or has no memory for so many actors, or if this process is
    connected to another cluster.
    """
    if ray.is_initialized():
        if address is not None:
            _require_connected_to(address)
        return
    asked = address or os.environ.get("RAY_ADDRESS")
    address = asked or "local"
    keep_token_private(make=address == "local")
    if address == "local":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        # A laptop may have fewer cores than actors.
        most = max((demand.total.get("CPU", 0.0) for demand in demands), default=0.0)
        cpus = max(os.cpu_count() or 1, math.ceil(at_once * most))
        _require_memory(at_once * max((len(demand.actors) for demand in demands), default=0))
        try:
            with _own_signals():
                # A dashboard is ten processes, which delay the first round by a second or two.
                dashboard = asked is not None
                ray.init(
                    address="local",
                    namespace=NAMESPACE,
                    num_cpus=cpus,
                    include_dashboard=dashboard,
                    log_to_driver=False,
                )
        except Exception as error:  # what Ray raises if its processes do not come up in time has no class of its own
            raise MissingResources(f"Ray did not start on this machine: {error}") from error
        return
    address = _found() if address == "auto" else address
    _probe(address)
    try:
        with _own_signals():
            ray.init(address=address, namespace=NAMESPACE, log_to_driver=False)
    except (ConnectionError, ValueError, RuntimeError, RayError) as error:  # no cluster, other versions, no token
        hint = "; a cluster that wants a token is reached with RAY_AUTH_MODE=token"
        raise MissingResources(f"address: must be that of a Ray cluster, got {address!r}: {error}{hint}") from error


def _require_memory(actors: int) -> None:
    """Raises MissingResources if this machine could not even start so many actors. It would come to a standstill."""
    have = get_system_memory()
    if actors * ACTOR_BYTES > have:
        raise MissingResources(
            f"this machine must have memory for {actors} actors of at least {ACTOR_BYTES / 1e9:g} GB, got "
            f"{have / 1e9:.0f} GB; ask for fewer under resources, such as one client actor for each of its "
            f"{os.cpu_count()} cores, which may host any number of clients"
        )


def _found() -> str:
    """Returns the address that Ray takes for `auto`, which may be that of a cluster that is gone.

    Raises MissingResources if Ray knows of none.
    """
    try:
        return str(get_ray_address_from_environment("auto", None))
    except ConnectionError as error:
        raise MissingResources(
            "address: Ray must run on this machine for 'auto', but none was found; `ray start --head` starts one, "
            "and 'local' starts one for this command alone"
        ) from error


def _require_connected_to(address: str) -> None:
    """Raises MissingResources if this process is connected to another cluster than that of an address."""
    connected = ray.get_runtime_context().gcs_address
    if address == "auto" or (started_here() if address == "local" else _endpoints(address) & _endpoints(connected)):
        return
    raise MissingResources(
        f"address: must be that of the Ray to which this process is connected, {connected!r}, got {address!r}; leave "
        "it out to run there, or call ray.shutdown() first"
    )


def _endpoints(address: str) -> set[tuple[str, str]]:
    """Returns the IP addresses of host:port, each with the port; none if there is no such host."""
    host, _, port = address.rpartition(":")
    try:
        found = {str(info[4][0]) for info in socket.getaddrinfo(host.strip("[]"), None)}
    except (OSError, UnicodeError):
        return set()
    return {(ray.util.get_node_ip_address() if ip in ("127.0.0.1", "::1") else ip, port) for ip in found}


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keeps the caller's handler of SIGTERM, which Ray would replace. Signals that come within the block go to that
    handler, too.

    Processes that Ray starts within the block ignore SIGHUP: a lost terminal sends it to all of them, and the scheduler
    could no longer write how the run ended. They end when this process does.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    terminate, hang_up = signal.getsignal(signal.SIGTERM), signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        try:
            yield
        finally:
            signal.signal(signal.SIGHUP, hang_up)
            if callable(terminate):
                signal.signal(signal.SIGTERM, terminate)
    except SystemExit:  # raised by handlers of SIGTERM that Ray had put in place by then
        if callable(terminate):
            terminate(signal.SIGTERM, None)
        raise


def _probe(address: str) -> None:
    """Raises MissingResources if no Ray answers. Ray would try for minutes, then end the process."""
    if "://" in address:
        raise MissingResources(
            f"address: must be auto or host:port, got {address!r}, which is for Ray Client, which raysim does not use; "
            "submit the run as a job to the cluster instead: ray job submit -- raysim run ..."
        )
    host, colon, port = address.rpartition(":")
    if not colon:  # such as auto
        return
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=PROBE_S) as connection:
            if os.environ.get("RAY_USE_TLS") != "1":
                connection.sendall(_HELLO)
                if connection.recv(9)[3:4] != _SETTINGS:
                    raise ConnectionError("what listens there is not Ray")
    except (OSError, ValueError, OverflowError) as error:
        raise MissingResources(
            f"address: a Ray cluster must answer there, got {address!r}: {error}; `ray status` on the cluster's head "
            "says whether it is up, its port is 6379 if none was chosen, and `ray start --head` starts one"
        ) from error


def keep_token_private(*, make: bool) -> None:
    """Lets only its owner read Ray's token, and makes one if there is none, unless Ray is told to use none or another.

    Ray would make a file that everybody can read who may enter the home folder, and whoever knows the token can run
    code as its owner. Where the home folder cannot be written to, Ray says so. make: whether Ray would make one.
    """
    token = Path.home() / ".ray" / "auth_token"
    with suppress(OSError):
        if token.stat().st_mode & 0o077:
            token.chmod(0o600)
    others = {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & os.environ.keys()
    if not make or others or os.environ.get("RAY_AUTH_MODE", "token").lower() != "token":
        return
    hidden = token.with_name(f".auth_token.{os.getpid()}")
    with suppress(OSError):
        token.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with open(os.open(hidden, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
                file.write(secrets.token_hex(32))
            os.link(hidden, token)  # fails if there is one, and shows it to others only once it is whole
        finally:
            hidden.unlink(missing_ok=True)
