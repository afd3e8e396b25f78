"""Buffers of a module that are not among a model's buffers: integers and booleans, and buffers that are not persistent.

One process trains many clients with one module. If such a buffer, for example a count of steps, kept its value from one
client to the next, results would depend on the order of clients on a worker, and so on the number of workers.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from raysim.models.layout import Layout


class Unkept:
    """The module's buffers that have no place in the layout, with their first values."""

    def __init__(self, module: nn.Module, layout: Layout) -> None:
        held = {entry.name for entry in layout.buffers}
        owners = dict(module.named_modules())
        self._places: list[tuple[dict[str, Tensor | None], str]] = []
        self._buffers: list[Tensor] = []
        for path, buffer in module.named_buffers():
            if path not in held:
                owner, _, name = path.rpartition(".")
                self._places.append((owners[owner]._buffers, name))
                self._buffers.append(buffer)
        self._first = [buffer.clone() for buffer in self._buffers]
        self._versions = [buffer._version for buffer in self._buffers]

    @torch.no_grad()
    def restore(self) -> None:
        """Restores the first values of those that were changed or replaced."""
        for number, (buffer, (buffers, name)) in enumerate(zip(self._buffers, self._places, strict=True)):
            buffers[name] = buffer
            if buffer._version != self._versions[number]:  # torch counts changes in place
                buffer.copy_(self._first[number])
                self._versions[number] = buffer._version
