"""Settings of the process on which a run's bits depend: random generators, threads, and options of torch and numpy.

Ray's workers are new processes. A run in the user's own process must compute as in a new one, whatever the program
around it has set, and must leave these settings as it found them.
"""

import logging
import os
import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib import import_module
from multiprocessing import parent_process
from typing import Any, NoReturn

import numpy as np

from actors.interrupt import deferring

_log = logging.getLogger("raysim")
_alone = threading.RLock()  # most of this state is shared by all threads

Setting = tuple[Callable[[], Any], Callable[[Any], Any], Any]  # reads it, sets it, and what a new process has


@contextmanager
def standard_state(*, torch: bool = False) -> Iterator[None]:
    """Within the block, this process computes as a new one would; afterwards it is as before.

    A second thread that comes here waits until the first one leaves. A block within a block begins anew, too.

    torch: loads it first, for blocks that compute with it. Its settings are kept only if it is loaded by then.
    """
    if torch:
        with deferring():  # a process that is interrupted in the import of torch aborts
            import_module("torch")
    if not _alone.acquire(blocking=False):
        _log.info("waits for the run that is under way in another thread of this process")
        _alone.acquire()
    try:
        with ExitStack() as after, np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"):
            after.callback(setattr, os, "_exit", os._exit)
            setattr(os, "_exit", _not_ending(os._exit))  # noqa: B010 - type checkers let nobody assign to it
            _keep(after, random.getstate, random.setstate)
            _keep(after, np.random.get_state, np.random.set_state)
            if loaded := sys.modules.get("torch"):
                _keep_torch(after, loaded)
                set_standard()
            yield
    finally:
        _alone.release()


def _not_ending(end: Callable[[int], NoReturn]) -> Callable[[int], NoReturn]:
    """Returns what stands for `os._exit` in hosted code: a process that it copies may end so, but not this one.

    One that another process has started may, too, for that tells how it ended.
    """
    process = os.getpid()
    if parent_process() is not None:
        return end

    def refuse(status: int) -> NoReturn:
        if os.getpid() != process:
            end(status)
        raise RuntimeError(f"os._exit({status}) would end the process and leave the run as it is; raise an exception")

    return refuse


def set_standard() -> None:
    """Gives torch, which must be loaded, the settings that it has in a new process, in this thread.

    New processes need it, too: a user's modules may have changed settings when they were imported.
    """
    for _, set_to, standard in _settings(sys.modules["torch"]):
        set_to(standard)


def _keep(after: ExitStack, read: Callable[[], Any], set_to: Callable[[Any], Any]) -> None:
    with suppress(RuntimeError):  # torch does not read a precision that was set by its old and its new names
        after.callback(set_to, read())


def _keep_torch(after: ExitStack, torch: Any) -> None:
    for read, set_to, _ in reversed(_settings(torch)):  # what is kept last is set first
        _keep(after, read, set_to)
    _keep(after, torch.get_num_threads, torch.set_num_threads)
    _keep(after, torch.get_rng_state, torch.set_rng_state)
    if torch.cuda.is_initialized():
        _keep(after, torch.cuda.get_rng_state, torch.cuda.set_rng_state)
    device = torch.get_default_device()
    after.callback(_set_device, torch, device)
    after.enter_context(torch.inference_mode(False))
    if device.type != "cpu":
        after.enter_context(torch.device("cpu"))


def _set_device(torch: Any, device: Any) -> None:
    """Makes a device the default again, if a module that was imported has set another one: what a user's `with` block
    has made the default must not become that for ever."""
    if torch.get_default_device() != device:
        torch.set_default_device(None if device.type == "cpu" else device)


def _settings(torch: Any) -> list[Setting]:
    """Returns the settings that can change bits, in the order in which to set them."""
    sdp, backends = torch.backends.cuda, torch.backends
    return [
        (torch.get_default_dtype, torch.set_default_dtype, torch.float32),
        (torch.is_grad_enabled, torch.set_grad_enabled, True),
        *(
            (partial(torch.is_autocast_enabled, kind), partial(torch.set_autocast_enabled, kind), False)
            for kind in ("cpu", "cuda")
        ),
        (
            lambda: (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()),
            lambda found: torch.set_anomaly_enabled(*found),
            (False, True),
        ),
        (_flushes, torch.set_flush_denormal, False),
        (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode, 0),
        _attribute(torch.utils.deterministic, "fill_uninitialized_memory", True),
        _attribute(backends.cudnn, "enabled", True),
        _attribute(backends.cudnn, "benchmark", False),
        _attribute(backends.cudnn, "deterministic", False),
        _attribute(backends.cudnn, "allow_tf32", True),
        (torch._C._get_mkldnn_enabled, torch._C._set_mkldnn_enabled, True),
        (sdp.flash_sdp_enabled, sdp.enable_flash_sdp, True),
        (sdp.mem_efficient_sdp_enabled, sdp.enable_mem_efficient_sdp, True),
        (sdp.math_sdp_enabled, sdp.enable_math_sdp, True),
        (backends.mha.get_fastpath_enabled, backends.mha.set_fastpath_enabled, True),
        _attribute(backends.opt_einsum, "enabled", backends.opt_einsum.is_available()),
        _attribute(torch.nn.utils.parametrize, "_cache_enabled", 0),
        (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "highest"),
        *_precisions(backends),
    ]


def _precisions(backends: Any) -> Iterator[Setting]:
    """Yields the precisions of float32 by their new names, for versions of torch that have these."""
    cudnn, onednn = backends.cudnn, getattr(backends.mkldnn, "matmul", None)
    if not hasattr(backends, "fp32_precision") or onednn is None:
        return
    for owner in (backends, backends.mkldnn.conv, backends.mkldnn.rnn):
        yield _attribute(owner, "fp32_precision", "none")
    for owner in (onednn, backends.cuda.matmul):
        yield _attribute(owner, "fp32_precision", "ieee")
    for owner in (cudnn.conv, cudnn.rnn):
        yield _attribute(owner, "fp32_precision", "tf32")


def _attribute(owner: Any, name: str, standard: Any) -> Setting:
    return partial(getattr, owner, name), partial(setattr, owner, name), standard


def _flushes() -> bool:
    """Tells whether this thread takes the smallest numbers for 0. torch can set that, but does not tell it."""
    return sys.float_info.min / 2 == 0
