"""This process, in which a run may be carried out beside whatever else the user's program does.

Workers on Ray and of `--local` are new processes. A run in the user's own process computes with the settings that it
finds there, and says which of them a new process would not have.
"""

import logging
import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from actors.process import deferring, numpy_settings, torch_settings

_log = logging.getLogger("raysim")
_alone = threading.RLock()  # generators and settings are shared by all threads


@contextmanager
def isolated(*, torch: bool = False) -> Iterator[None]:
    """Within the block, no other thread has such a block. Afterwards, what raysim sets is as it was before: generators
    of random numbers and, of torch, the number of threads and whether algorithms are deterministic.

    A block may be within a block. torch: loads it first, for blocks that compute with it.
    """
    if torch:
        with deferring():  # a process that is interrupted in the import of torch aborts
            import_module("torch")
    if not _alone.acquire(blocking=False):
        _log.info("waits for the run that is under way in another thread of this process")
        _alone.acquire()
    try:
        with ExitStack() as after:
            _keep(after, random.getstate, random.setstate)
            _keep(after, np.random.get_state, np.random.set_state)
            if loaded := sys.modules.get("torch"):
                _keep(after, loaded.get_rng_state, loaded.set_rng_state)
                _keep(after, loaded.get_num_threads, loaded.set_num_threads)
                _keep(after, loaded.get_deterministic_debug_mode, loaded.set_deterministic_debug_mode)
                memory = loaded.utils.deterministic
                after.callback(setattr, memory, "fill_uninitialized_memory", memory.fill_uninitialized_memory)
                if loaded.cuda.is_initialized():
                    _keep(after, loaded.cuda.get_rng_state, loaded.cuda.set_rng_state)
            yield
    finally:
        _alone.release()


def _keep(after: ExitStack, read: Callable[[], Any], set_to: Callable[[Any], Any]) -> None:
    after.callback(set_to, read())


def unusual_settings() -> list[str]:
    """Returns the settings of numpy and torch that can change results and are not as in a new process, in words."""
    settings = numpy_settings() | torch_settings()
    return [
        f"{name} is {value} in this process, and {usual} in a new one, so results may be others there; set it back, or "
        "run with --local 1"
        for name, (value, usual) in settings.items()
        if value != usual
    ]


@contextmanager
def quiet() -> Iterator[None]:
    """Lets transformers and bitsandbytes report errors only, and show no progress bars, within the block."""
    said: Any = import_module("transformers.utils.logging")
    level, bars = said.get_verbosity(), said.is_progress_bar_enabled()
    said.set_verbosity_error()
    said.disable_progress_bar()
    other = logging.getLogger("bitsandbytes")
    before = other.level
    other.setLevel(logging.ERROR)
    try:
        yield
    finally:
        other.setLevel(before)
        said.set_verbosity(level)
        if bars:
            said.enable_progress_bar()
