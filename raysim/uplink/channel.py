"""Reads lists of transforms: which of them take a vector, what a memory covers, what is decoded, and what travels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from raysim.parts.errors import BadInput, BadValue, located
from raysim.parts.lazy import torch
from raysim.parts.own import place_of
from raysim.terms import Record, Shapes, Tensor, Traffic, Vectors
from raysim.uplink.uplink import Decoded, Size, Uplink, UplinkPoint, entering, leaving, memory_of, shadows_each

MEMORY = "memory"  # the entry that a transform with a memory keeps besides its own


class Transformed(NamedTuple):
    """What a channel makes of a vector."""

    vector: Tensor  # what the receiver decodes; the very tensor that was given if nothing changes
    kept: dict[int, Record]  # what transforms keep for the next one, by their place
    memory: Tensor | None  # what is remembered; None without a memory, and if there is nothing to remember
    logged: dict[str, float]
    places: Tensor | None = None  # where the vector may be other than 0; None: anywhere


class Channel:
    """The transforms of a list that take one vector, and what is known of its size before there is one.

    link: the key of the scenario's list. transforms: by their place in it. shapes: of the vector's layers. taken: the
    entries that are joined to the vector; (): those that are shaped like the model. names: the entries of a record that
    these are.
    """

    def __init__(
        self,
        link: str,
        transforms: Mapping[int, Uplink],
        shapes: Shapes,
        taken: tuple[str, ...] = (),
        names: Sequence[str] = (),
    ) -> None:
        self.link, self.transforms, self.shapes, self.taken, self.names = link, transforms, shapes, taken, names
        self.groups = list(groups(transforms))
        size = self._whole = Size.dense(shapes)
        self._before: dict[int, Size] = {}  # what each transform is given
        for place, transform in transforms.items() if size.values else ():
            self._before[place], size = size, transform.size(size)
            if not isinstance(size, Size) or size.bits < 0:
                text = f"{type(transform).__name__}.size: must return a Size of at least 0 bits, as"
                raise BadInput(
                    f"{link}.{place}",
                    f"{text} before._replace(...) makes it, got {size!r}{place_of(type(transform).size)}",
                )
        self._sent = size

    def __call__(
        self, vector: Tensor, kept: Mapping[int, Record], draw: Callable[[int], torch.Generator]
    ) -> Transformed:
        """Takes a vector through the transforms.

        kept: what transforms kept before. draw: returns the generator of a transform, by its place.
        """
        after: dict[int, Record] = {}
        memory, logged, bound, places = None, dict[str, float](), None, None
        for group in self.groups:
            head = next(iter(group))
            before = kept.get(head, {}).get(MEMORY)
            sent = given = entering(group[head], vector, before)
            for place, transform in group.items():
                own = {name: entry for name, entry in kept.get(place, {}).items() if name != MEMORY}
                point = UplinkPoint(self._before[place], draw(place), bound)
                version = sent._version
                with located(f"{self.link}.{place}"):
                    found = transform.send(sent, own or transform.first(len(vector)), point)
                    _require_decoded(transform, found, sent, version)
                sent, bound = found.vector, transform.bound
                logged.update(found.logged)
                if found.kept:
                    after[place] = found.kept
            decoded, remembered = leaving(group[head], vector, given, found, before)
            vector, places = decoded, found.places if decoded is sent else None
            if remembered is not None:
                memory, after[head] = remembered, {**after.get(head, {}), MEMORY: remembered}
        return Transformed(vector, after, memory, logged, places)

    @property
    def whole_bits(self) -> int:
        """The bits of the vector without the transforms."""
        return self._whole.bits

    def bits(self, versions: int | None = None) -> int:
        """Returns the bits that travel. versions: how many newer ones there are than what the receiver has a copy of;
        None if it has none."""
        shadow = next((one for one in self.transforms.values() if memory_of(one) == "shadow"), None)
        if shadow is None or not self._whole.values:
            return self._sent.bits
        if versions is None:
            return self._whole.bits
        return min((1 if shadows_each(shadow) else versions) * self._sent.bits, self._whole.bits)


def _require_decoded(transform: Uplink, found: object, sent: Tensor, version: int) -> None:
    """Raises BadValue unless a transform returned a vector like the one that it was given, and left that as it was.

    version: torch's count of the changes in place before.
    """
    where, place = f"{type(transform).__name__}.send", place_of(type(transform).send)
    if sent._version != version:
        raise BadValue(f"{where}: must not change the vector in place; copy it first, with clone(){place}")
    if isinstance(found, Decoded) and found.vector.shape == sent.shape and found.vector.dtype == sent.dtype:
        return
    vector = getattr(found, "vector", None)
    got = type(found).__name__ if vector is None else f"{vector.dtype} of shape {tuple(vector.shape)}"
    must = f"must return Decoded(vector), with a vector of {sent.dtype} of shape {tuple(sent.shape)} as it was given"
    raise BadValue(f"{where}: {must}, got {got}{place}")


def groups(transforms: Mapping[int, Uplink]) -> Iterator[dict[int, Uplink]]:
    """Yields the transforms one by one, and one that has a memory together with the codecs that it covers: all after
    it up to the next bound or noise."""
    group: dict[int, Uplink] = {}
    for place, one in transforms.items():
        covered = group and next(iter(group.values())).remembers and one.kind == "codec"
        if group and not covered:
            yield group
            group = {}
        group[place] = one
    if group:
        yield group


def by_vector(transforms: Sequence[Uplink]) -> dict[tuple[str, ...], dict[int, Uplink]]:
    """Returns the transforms of each vector, by the entries that are joined to it, and by their place in the list."""
    found: dict[tuple[str, ...], dict[int, Uplink]] = {}
    for place, one in enumerate(transforms):
        for taken in one.takes:
            found.setdefault(taken, {})[place] = one
    return found


def channels(link: str, transforms: Sequence[Uplink], vectors: Vectors) -> list[Channel]:
    """Returns the channel of each vector. vectors: the shapes of their layers, by the entries that they join."""
    return [Channel(link, members, vectors.get(taken, ()), taken) for taken, members in by_vector(transforms).items()]


def traffic_of(
    found: Traffic, uplink: Sequence[Channel], downlink: Sequence[Channel] = (), versions: int | None = None
) -> Traffic:
    """Returns the bytes of an update and of the message before it or, of a peer, of its message as `up`: one count for
    tables, budgets and computed delays. found: what the algorithm says. versions: as in `Channel.bits`."""
    if not uplink and not downlink:
        return found
    sent, whole = sum(one.bits() for one in uplink), sum(one.whole_bits for one in uplink)
    received, message = sum(one.bits(versions) for one in downlink), sum(one.whole_bits for one in downlink)
    return Traffic(found.up - whole // 8 + -(-sent // 8), found.down - message // 8 + -(-received // 8))
