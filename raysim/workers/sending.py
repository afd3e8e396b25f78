"""Applies lists of transforms to what clients, peers and the server send, at one place for all algorithms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.linalg import vector_norm as norm

from raysim.models.layout import Layout
from raysim.parts.errors import BadInput
from raysim.parts.rng import torch_seed
from raysim.scenario import Scenario
from raysim.terms import Record, Shapes, Vectors
from raysim.uplink.channel import Channel, Transformed, by_vector
from raysim.uplink.uplink import BUFFERS, Uplink


class DrawKey(NamedTuple):
    """What the draws of transforms belong to."""

    member: int  # the client or peer
    number: int  # how often it was dispatched, or has mixed, before
    version: int  # of the model that it received; of a peer, how often it has mixed


class DecodedRecord(NamedTuple):
    """A record as its receiver decodes it."""

    record: Record
    kept: dict[int, Record]  # what transforms keep, by their place in the list
    measured: dict[str, float | None]  # columns of the table `updates`


class Sending:
    """Takes the vectors out of records, and puts what the receiver decodes in their place.

    layout: of the model, whose padding transforms do not see. link: the key of the scenario whose transforms these are.
    """

    def __init__(self, layout: Layout, scenario: Scenario, link: Literal["uplink", "downlink"]) -> None:
        self._layout, self._seed, self._algorithm, self._link = layout, scenario.seed, scenario.algorithm.name, link
        self._released = scenario.release is not None
        self._shared = tuple(one.shape for one in layout.entries if one.offset < layout.cut)
        self._all = tuple(one.shape for one in layout.entries)
        self._end = sum(one.size for one in layout.entries if one.offset < layout.cut)
        self._last: tuple[tuple[Any, ...], list[Channel]] | None = None  # that was read

    def channels(self, transforms: Sequence[Uplink], sent: Record) -> list[Channel]:
        """Returns the channel of each vector that transforms take of a record: read once for records of one shape.

        Raises BadInput if the record does not have what a transform takes, or if two vectors share an entry.
        """
        key = tuple(transforms), [(name, entry.shape) for name, entry in sent.items()]
        if self._last is None or self._last[0] != key:
            self._last = key, list(self._found(transforms, sent))
        return self._last[1]

    def vectors(self, transforms: Sequence[Uplink], sent: Record) -> Vectors:
        """Returns the shapes of the layers of each vector that transforms take of a record; raises as `channels`."""
        return {channel.taken: channel.shapes for channel in self.channels(transforms, sent)}

    def __call__(
        self, transforms: Sequence[Uplink], key: DrawKey, sent: Record, base: Record, kept: dict[int, Record]
    ) -> DecodedRecord:
        """Returns a record as its receiver decodes it.

        base: the entries that the record is relative to; {} if it is a difference. kept: what transforms kept before.
        """
        if not transforms:
            return DecodedRecord(sent, kept, {})
        record, after, logged = sent, dict[int, Record](), dict[str, float | None]()
        squares: list[tuple[float, ...]] = []
        for channel in self.channels(transforms, sent):
            names = channel.names
            whole, split = self._joined([sent[n] - base[n] if n in base else sent[n] for n in names])
            if not len(whole):
                continue

            def draw(place: int, of: str = " ".join(("", *channel.taken))) -> torch.Generator:
                purpose = f"{self._link} {place} {transforms[place].name}{of}"
                ids = key[2:] if transforms[place].draws_alike else key[:2]
                return torch.Generator().manual_seed(torch_seed(self._seed, purpose, *ids))

            found = channel(whole, kept, draw)
            after |= found.kept
            logged |= found.logged
            squares.append(_squares(whole, found))
            if found.vector is not whole:
                changed = zip(names, split(found.vector), strict=True)
                record = {**record, **{n: base[n] + one if n in base else one for n, one in changed}}
        return DecodedRecord(record, after, {**_norms(squares, any(one.remembers for one in transforms)), **logged})

    def joined(self, sent: Record) -> tuple[Tensor, Callable[[Tensor], Record], list[str]]:
        """Returns the vector of all entries that are shaped like the model, a function that puts another one in its
        place, and the names of the other entries."""
        names = self._keys((), 0, sent)
        whole, split = self._joined([sent[name] for name in names])
        others = [name for name in sent if name not in names]
        return whole, lambda vector: {**sent, **dict(zip(names, split(vector), strict=True))}, others

    def _joined(self, entries: Sequence[Tensor]) -> tuple[Tensor, Callable[[Tensor], list[Tensor]]]:
        """Returns entries as one vector without padding, and a function that divides such a vector into entries."""
        pieces = [
            torch.cat((one[: self._end], one[self._layout.cut :])) if self._is_padded(one) else one.flatten()
            for one in entries
        ]

        def split(vector: Tensor) -> list[Tensor]:
            parts = vector.split_with_sizes([len(piece) for piece in pieces])
            return [self._like(entry, part) for entry, part in zip(entries, parts, strict=True)]

        return pieces[0] if len(pieces) == 1 else torch.cat(pieces), split

    def _found(self, transforms: Sequence[Uplink], sent: Record) -> Iterator[Channel]:
        places: dict[str, int] = {}  # by entry: of the first transform that takes it
        for taken, members in by_vector(transforms).items():
            place = min(members)
            names = self._keys(taken, place, sent)
            if twice := [name for name in names if name in places]:
                text = f"must be the same as those of {self._link}.{places[twice[0]]}, which takes {twice[0]}, too"
                got = ", ".join(taken) or "none"
                raise BadInput(f"{self._link}.{place}.entries", f"{text}, got {got}; leave `entries` out of both")
            places |= dict.fromkeys(names, place)
            shapes = tuple(shape for name in names for shape in self._shapes_of(sent[name]))
            yield Channel(self._link, members, shapes, taken, names)

    def _keys(self, taken: tuple[str, ...], place: int, sent: Record) -> list[str]:
        """Returns the names of the entries that are joined to a vector. place: of the first transform that takes it."""
        if taken == BUFFERS:
            return [name for name in BUFFERS if name in sent]
        if wrong := [name for name in taken if name not in sent or not sent[name].is_floating_point()]:
            text = f"must name entries of floating-point numbers that {self._algorithm} sends, which are"
            raise BadInput(f"{self._link}.{place}.entries", f"{text} {_names(sent)}, got {wrong[0]}")
        sizes = (self._layout.size, self._layout.cut)
        keys = [name for name, entry in sent.items() if name != "buffers" and entry.ndim == 1 and len(entry) in sizes]
        if not keys and not taken and self._released:
            text = f"must not go with {self._algorithm}, which sends no vector of parameters that noise could cover"
            raise BadInput("release", f"{text}, got {_names(sent)}; take another algorithm")
        if not keys and not taken:
            text = f"must be left out, because {self._algorithm} sends no vector that transforms could take"
            raise BadInput(self._link, f"{text}, got {_names(sent)}; or name what they take with `entries`")
        return list(taken) or keys

    def _shapes_of(self, entry: Tensor) -> Shapes:
        if entry.ndim == 1 and len(entry) in (self._layout.size, self._layout.cut):
            return self._all if len(entry) == self._layout.size else self._shared
        return (tuple(entry.shape),) if entry.numel() else ()

    def _like(self, entry: Tensor, piece: Tensor) -> Tensor:
        if not self._is_padded(entry):
            return piece.view(entry.shape)
        vector = torch.zeros_like(entry)
        vector[: self._end], vector[self._layout.cut :] = piece[: self._end], piece[self._end :]
        return vector

    def _is_padded(self, entry: Tensor) -> bool:
        layout = self._layout
        return self._end < layout.cut and entry.ndim == 1 and len(entry) in (layout.size, layout.cut)


def _squares(whole: Tensor, found: Transformed) -> tuple[float, ...]:
    """Returns the squares of norms: of a vector, of what is decoded of it, of the difference, and of the memory."""
    before, memory = float(norm(whole)) ** 2, 0.0 if found.memory is None else float(norm(found.memory)) ** 2
    if found.vector is whole:
        return before, before, 0.0, memory
    given, decoded = whole, found.vector
    if found.places is not None:  # elsewhere it is 0
        given, decoded = (one.index_select(0, found.places) for one in (given, decoded))
    after, both = float(norm(decoded)) ** 2, float(torch.dot(given, decoded))
    error = before + after - 2 * both  # with no pass over the difference, unless rounding would leave little of it
    if not error > 1e-3 * before:
        error = float(norm(whole - found.vector)) ** 2
    return before, after, error, memory


def _norms(squares: Sequence[tuple[float, ...]], remembers: bool) -> dict[str, float | None]:
    """Returns the columns that follow from norms."""
    if not squares:
        return {}
    before, after, error, memory = (math.sqrt(sum(column)) for column in zip(*squares, strict=True))
    return {
        "norm_before": before,
        "norm_after": after,
        "relative_error": error / before if before else None,
        "memory_norm": memory if remembers else None,
    }


def _names(sent: Record) -> str:
    return ", ".join(sent) or "nothing"
