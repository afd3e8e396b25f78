"""Libraries that take long to load, and that the scheduler and checks of scenarios need seldom or never: each is loaded
when something of it is first used."""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["F", "networkx", "nn", "torch"]

# Read by torch when it first allocates: new tensors of 2 MB or more then take few page faults, as on Linux they may.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

if TYPE_CHECKING:
    import networkx
    import torch
    import torch.nn.functional as F
    from torch import nn
else:

    class Lazy:
        """A module that is loaded when something of it is first used."""

        def __init__(self, name: str) -> None:
            self._name, self._module = name, None

        def __getattr__(self, attribute: str) -> Any:
            if self._module is None:
                self._module = import_module(self._name)
            return getattr(self._module, attribute)

        def __reduce__(self) -> tuple[type, tuple[str]]:
            """Makes it travel with users' own code that takes it from here."""
            return Lazy, (self._name,)

    networkx, torch, nn, F = map(Lazy, ("networkx", "torch", "torch.nn", "torch.nn.functional"))
