"""Applies lists of transforms to what clients, peers and the server send, at one place for all algorithms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from raysim.models.layout import Layout
from raysim.parts.errors import BadInput
from raysim.parts.rng import torch_seed
from raysim.scenario import Scenario
from raysim.terms import Record, Shapes, Vectors
from raysim.uplink.chain import chains, passed
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
        self._shared = tuple(one.shape for one in layout.entries if one.offset < layout.cut)
        self._all = tuple(one.shape for one in layout.entries)
        self._end = sum(one.size for one in layout.entries if one.offset < layout.cut)

    def vectors(self, transforms: Sequence[Uplink], sent: Record) -> Vectors:
        """Returns the shapes of the layers of each vector that transforms take of a record.

        Raises BadInput if the record does not have what one of them takes, or if two vectors share an entry.
        """
        return {taken: self._shapes(sent, keys) for taken, (keys, _) in self._taken(transforms, sent).items()}

    def __call__(
        self, transforms: Sequence[Uplink], key: DrawKey, sent: Record, base: Record, kept: dict[int, Record]
    ) -> DecodedRecord:
        """Returns a record as its receiver decodes it.

        base: the entries that the record is relative to; {} if it is a difference. kept: what transforms kept before.
        """
        if not transforms:
            return DecodedRecord(sent, kept, {})
        record, after, logged = sent, dict[int, Record](), dict[str, float | None]()
        measured: list[Tensor] = []  # squares of norms: before, after, of the error, of the memory
        for taken, (keys, members) in self._taken(transforms, sent).items():
            parts = [sent[name] - base[name] if name in base else sent[name] for name in keys]
            pieces = [self._unpadded(part).flatten() for part in parts]
            whole = pieces[0] if len(keys) == 1 else torch.cat(pieces)
            if not len(whole):
                continue

            def draw(place: int, of: str = " ".join(("", *taken))) -> torch.Generator:
                purpose = f"{self._link} {place} {transforms[place].name}{of}"
                ids = key[2:] if transforms[place].draws_alike else key[:2]
                return torch.Generator().manual_seed(torch_seed(self._seed, purpose, *ids))

            found = passed(self._link, members, whole, self._shapes(sent, keys), kept, draw)
            after |= found.kept
            logged |= found.logged
            measured.append(_squares(whole, found.vector, found.memory))
            if found.vector is not whole:
                decoded = found.vector.split_with_sizes([len(one) for one in pieces])
                changed = {name: self._like(sent[name], one) for name, one in zip(keys, decoded, strict=True)}
                record = {**record, **{n: base[n] + one if n in base else one for n, one in changed.items()}}
        return DecodedRecord(record, after, {**_norms(measured, any(one.remembers for one in transforms)), **logged})

    def joined(self, sent: Record) -> tuple[Tensor, Callable[[Tensor], Record], list[str]]:
        """Returns the vector of all entries that are shaped like the model, a function that puts another one in its
        place, and the names of the other entries."""
        keys = self._keys((), 0, sent)
        taken = [self._unpadded(sent[key]) for key in keys]

        def put_back(vector: Tensor) -> Record:
            pieces = vector.split_with_sizes([len(one) for one in taken])
            return {**sent, **{key: self._like(sent[key], one) for key, one in zip(keys, pieces, strict=True)}}

        return torch.cat(taken), put_back, [key for key in sent if key not in keys]

    def _taken(
        self, transforms: Sequence[Uplink], sent: Record
    ) -> dict[tuple[str, ...], tuple[list[str], dict[int, Uplink]]]:
        """Returns for each vector the names of its entries, and the transforms that take it."""
        places: dict[str, int] = {}  # by entry: of the first transform that takes it
        found = {}
        for taken, members in chains(transforms).items():
            place = min(members)
            keys = self._keys(taken, place, sent)
            if twice := [name for name in keys if name in places]:
                text = f"must be the same as those of {self._link}.{places[twice[0]]}, which takes {twice[0]}, too"
                got = ", ".join(taken) or "none"
                raise BadInput(f"{self._link}.{place}.entries", f"{text}, got {got}; leave `entries` out of both")
            places |= dict.fromkeys(keys, place)
            found[taken] = keys, members
        return found

    def _keys(self, taken: tuple[str, ...], place: int, sent: Record) -> list[str]:
        """Returns the names of the entries that are joined to a vector. place: of the first transform that takes it."""
        if taken == BUFFERS:
            return [name for name in BUFFERS if name in sent]
        if wrong := [name for name in taken if name not in sent or not sent[name].is_floating_point()]:
            text = f"must name entries of floating-point numbers that {self._algorithm} sends, which are"
            raise BadInput(f"{self._link}.{place}.entries", f"{text} {_names(sent)}, got {wrong[0]}")
        sizes = (self._layout.size, self._layout.cut)
        keys = [name for name, entry in sent.items() if name != "buffers" and entry.ndim == 1 and len(entry) in sizes]
        if not keys and not taken:
            text = f"must be left out, for {self._algorithm} sends no vector of parameters that transforms could take"
            raise BadInput(self._link, f"{text}, got {_names(sent)}; or name what they take with `entries`")
        return list(taken) or keys

    def _shapes(self, sent: Record, keys: Sequence[str]) -> Shapes:
        return tuple(chain.from_iterable(self._shapes_of(sent[name]) for name in keys))

    def _shapes_of(self, entry: Tensor) -> Shapes:
        if entry.ndim == 1 and len(entry) in (self._layout.size, self._layout.cut):
            return self._all if len(entry) == self._layout.size else self._shared
        return (tuple(entry.shape),) if entry.numel() else ()

    def _unpadded(self, entry: Tensor) -> Tensor:
        return torch.cat((entry[: self._end], entry[self._layout.cut :])) if self._is_padded(entry) else entry

    def _like(self, entry: Tensor, piece: Tensor) -> Tensor:
        if not self._is_padded(entry):
            return piece.view(entry.shape)
        vector = torch.zeros_like(entry)
        vector[: self._end], vector[self._layout.cut :] = piece[: self._end], piece[self._end :]
        return vector

    def _is_padded(self, entry: Tensor) -> bool:
        layout = self._layout
        return self._end < layout.cut and entry.ndim == 1 and len(entry) in (layout.size, layout.cut)


def _squares(whole: Tensor, decoded: Tensor, memory: Tensor | None) -> Tensor:
    before = whole.norm()
    after, error = (before, before * 0) if decoded is whole else (decoded.norm(), (whole - decoded).norm())
    return torch.stack((before, after, error, before * 0 if memory is None else memory.norm())).double().square()


def _norms(squares: Sequence[Tensor], remembers: bool) -> dict[str, float | None]:
    """Returns the columns that follow from norms."""
    if not squares:
        return {}
    before, after, error, memory = sum(squares[1:], squares[0]).sqrt().tolist()
    relative = error / before if before else None
    return {
        "norm_before": before,
        "norm_after": after,
        "relative_error": relative,
        "memory_norm": memory if remembers else None,
    }


def _names(sent: Record) -> str:
    return ", ".join(sent) or "nothing"
