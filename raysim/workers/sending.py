"""Applies the transforms of `uplink` to what clients and peers send, at one place for all algorithms."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from raysim.models.layout import Layout
from raysim.parts.errors import BadInput
from raysim.parts.rng import torch_seed
from raysim.scenario import Scenario
from raysim.terms import Record
from raysim.uplink.uplink import Uplink, UplinkPoint, remembered

Draw = Callable[[int], torch.Generator]
MEMORY = "memory"  # the entry that a transform with a memory keeps besides its own


class Sending:
    """Takes the vectors out of updates, and puts what the receiver decodes in their place.

    layout: of the model, whose padding transforms do not see.
    """

    def __init__(self, layout: Layout, scenario: Scenario) -> None:
        self._layout, self._seed, self._algorithm = layout, scenario.seed, scenario.algorithm.name
        self._shared = tuple(one.size for one in layout.entries if one.offset < layout.cut)
        self._all = tuple(one.size for one in layout.entries)

    def layers(self, sent: Record) -> tuple[int, ...]:
        """Returns how many numbers each layer of the vector has of which transforms get an update.

        Raises BadInput if no entry of the update is shaped like the model.
        """
        return tuple(size for key in self._keys(sent) for size in self._layers_of(sent[key]))

    def __call__(
        self,
        transforms: Sequence[Uplink],
        key: tuple[int, int],
        sent: Record,
        base: Record,
        kept: dict[int, Record],
    ) -> tuple[Record, dict[int, Record]]:
        """Returns an update, or message, as its receiver decodes it, and what transforms keep.

        key: the client, and how often it was dispatched, or the peer has mixed, before. base: the entries that the
        update is relative to; {} if it is a difference. kept: what transforms kept before.
        """
        if not transforms:
            return sent, kept

        def draw(place: int) -> torch.Generator:
            purpose = f"uplink {place} {transforms[place].name}"
            return torch.Generator().manual_seed(torch_seed(self._seed, purpose, *key))

        keys = self._keys(sent)
        taken = [self._unpadded(sent[key] - base[key] if key in base else sent[key]) for key in keys]
        whole = taken[0] if len(keys) == 1 else torch.cat(taken)
        decoded, after = passed(transforms, whole, self.layers(sent), kept, draw)
        if decoded is whole:
            return sent, after
        pieces = decoded.split_with_sizes([len(one) for one in taken])
        changed = {key: self._padded(piece, sent[key]) for key, piece in zip(keys, pieces, strict=True)}
        return {**sent, **{k: base[k] + one if k in base else one for k, one in changed.items()}}, after

    def _keys(self, sent: Record) -> list[str]:
        sizes = (self._layout.size, self._layout.cut)
        keys = [key for key, entry in sent.items() if key != "buffers" and entry.ndim == 1 and len(entry) in sizes]
        if not keys:
            got = ", ".join(sent) or "nothing"
            text = f"must be left out, for {self._algorithm} sends no vector of parameters that transforms could take"
            raise BadInput("uplink", f"{text}, got {got}")
        return keys

    def _layers_of(self, vector: Tensor) -> tuple[int, ...]:
        return self._all if len(vector) == self._layout.size else self._shared

    def _unpadded(self, vector: Tensor) -> Tensor:
        end, cut = sum(self._shared), self._layout.cut
        return vector if end == cut else torch.cat((vector[:end], vector[cut:]))

    def _padded(self, piece: Tensor, like: Tensor) -> Tensor:
        end, cut = sum(self._shared), self._layout.cut
        if end == cut:
            return piece
        vector = torch.zeros_like(like)
        vector[:end], vector[cut:] = piece[:end], piece[end:]
        return vector


def passed(
    transforms: Sequence[Uplink], vector: Tensor, layers: tuple[int, ...], kept: dict[int, Record], draw: Draw
) -> tuple[Tensor, dict[int, Record]]:
    """Returns what a receiver decodes of a vector, and what transforms keep. draw: returns the generator of a place."""
    after: dict[int, Record] = {}
    entered, end = vector, 0  # what the transforms that share a memory were given, and where they end
    for place, transform in enumerate(transforms):
        before = dict(kept.get(place) or transform.first(len(vector)))
        if transform.remembers:
            memory = before.pop(MEMORY, None)
            vector = vector if memory is None else vector + memory
            remembering, entered, end = place, vector, remembered(transforms, place)
        vector, after[place] = transform.send(vector, before, UplinkPoint(layers, draw(place)))
        if place + 1 == end and vector is not entered:
            after[remembering] = {**after[remembering], MEMORY: entered - vector}
    return vector, {place: record for place, record in after.items() if record}
