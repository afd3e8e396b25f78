"""Groups of clients that differ: who belongs to them, how they train, and how they behave."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema, core_schema

from raysim.clients.behaviours import ABehaviour, Honest
from raysim.clients.capacity import LevelCost, OwnSize
from raysim.local import Local
from raysim.models import MODELS, ModelPart
from raysim.models.module import model_block
from raysim.parts.errors import Problem
from raysim.parts.part import Count, Fraction, OneOf, Part, Positive, Unit, as_tuples
from raysim.parts.rng import generator
from raysim.terms import ModelKey

_WAYS = ("number", "share", "members", "file")


class _OwnModel(OneOf):
    """A size of the server's model, or a model of any architecture, which has a name."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        models = super().__get_pydantic_core_schema__(source, handler)
        either = {"of a size": handler.generate_schema(OwnSize), "of a name": models}
        union = core_schema.tagged_union_schema(either, discriminator=_tag)
        return core_schema.no_info_before_validator_function(model_block, union)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        names, either, *others = super().__get_pydantic_json_schema__(schema, handler)["anyOf"]
        return {"anyOf": [*either["oneOf"], names, *others]}


def _tag(value: Any) -> str:
    is_size = isinstance(value, OwnSize) or (isinstance(value, dict) and "name" not in value)
    return "of a size" if is_size else "of a name"


class ClientGroup(Part):
    """Some of the clients, or peers, with their own settings. One of number, share, members and file says who."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", examples=["some"])]
    """Name, which the tables show."""
    number: Count | None = None
    """How many clients are drawn into the group."""
    share: Annotated[Fraction | None, Field(examples=[0.5])] = None
    """Which share of all clients is drawn into the group, rounded to the nearest number."""
    members: tuple[Annotated[int, Field(ge=0)], ...] | None = None
    """The numbers of the clients in the group."""
    file: str | None = None
    """A text file with the numbers of the clients in the group, one a line."""
    local: dict[str, Any] = {}  # noqa: RUF012 - a field of a frozen part
    """Keys of `local` with other values for the group, such as {lr: 0.01, epochs: 1}."""
    behaviour: ABehaviour = Honest()
    """How the clients deviate from the algorithm."""
    model: Annotated[OwnSize | ModelPart, _OwnModel(MODELS)] | None = None
    """Their own model: for algorithms with models of several sizes, {width: 0.5}, which has half of the units of
    each hidden layer, or {depth: 2}, which has the first two parts; for algorithms that mix architectures, any model,
    such as {name: cnn}. null: that of `capacity` or, without it, the server's."""
    watts: Annotated[Positive, Unit("W")] | None = None
    """Power of a client of the group, in place of that by `world.watts` or by a trace of devices."""

    @model_validator(mode="after")
    def _in_one_way(self) -> Self:
        given = [way for way in _WAYS if getattr(self, way) is not None]
        if len(given) != 1:
            text = f"must say in one way who belongs to it: by {', '.join(_WAYS[:-1])} or {_WAYS[-1]}"
            raise ValueError(f"{text}, got {' and '.join(given) or 'none of them'}")
        return self

    def reads(self) -> tuple[str, ...]:
        return (self.file,) if self.file else ()

    def settings(self, local: Local) -> Local:
        """Returns how clients of the group train. Raises pydantic's ValidationError if keys are wrong."""
        return Local.model_validate(as_tuples({**dict(local), **self.local})) if self.local else local

    def drawn(self, clients: int) -> int:
        """Returns how many of all clients are drawn into the group, if they are not named."""
        return self.number if self.number is not None else round((self.share or 0.0) * clients)

    def listed(self) -> list[int] | None:
        """Returns the clients that are named; None if they are drawn. Raises ValueError or OSError for a bad file."""
        if self.file is None:
            return None if self.members is None else list(self.members)
        lines = [line.strip() for line in Path(self.file).read_text(encoding="utf-8").splitlines()]
        for place, line in enumerate(lines, 1):
            if line and not line.isdecimal():
                raise ValueError(f"line {place} must be the number of a client, got {line!r}")
        return [int(line) for line in lines if line]


def assign(groups: Sequence[ClientGroup], clients: int, seed: int) -> np.ndarray:
    """Returns the place of each client's group in the list, int64 (clients,); -1 where it is in none.

    Clients that are named come first; the others are drawn, group by group, from those that are left. Raises BadValue
    if a client is in two groups or if there are too few.
    """
    of_client = np.full(clients, -1)
    drawn = generator(seed, "groups of clients").permutation(clients)
    for place, group in enumerate(groups):
        of_client[group.listed() or []] = place
    for place, group in enumerate(groups):
        if group.listed() is None:
            of_client[drawn[of_client[drawn] < 0][: group.drawn(clients)]] = place
    return of_client


def group_problems(groups: Sequence[ClientGroup], clients: int) -> list[Problem]:
    """Returns what is wrong with groups of so many clients."""
    problems: list[Problem] = []
    taken: dict[int, str] = {}
    wanted = 0
    for place, group in enumerate(groups):
        path = f"clients.{place}"
        if any(group.name == other.name for other in groups[:place]):
            problems.append(Problem(f"{path}.name", f"must be the name of one group only, got {group.name!r} again"))
        try:
            listed = group.listed()
        except (OSError, ValueError) as error:
            problems.append(Problem(f"{path}.file", f"{group.file!r} cannot be read: {error}"))
            continue
        key = f"{path}.{'members' if group.file is None else 'file'}"
        for client in listed or ():
            if client >= clients:
                text = f"must be numbers of clients from 0 to {clients - 1}, got {client}; raise data.clients"
                problems.append(Problem(key, text))
            elif client in taken:
                text = f"client {client} must be in one group only, and is in {taken[client]}, too"
                problems.append(Problem(key, text))
            taken[client] = group.name
        if listed is None:
            wanted += group.drawn(clients)
    if (left := clients - len(taken)) < wanted:
        text = f"must not draw more clients than there are, got {wanted} of {left}; lower a number or share"
        problems.append(Problem("clients", text))
    return problems


class ClientGroups:
    """The groups of a run, with who is in which."""

    def __init__(self, groups: Sequence[ClientGroup], clients: int, seed: int, local: Local) -> None:
        """local: how clients in no group train."""
        self._groups = groups
        self._of = assign(groups, clients, seed) if groups else None
        self._local = local
        self._locals = [group.settings(local) for group in groups]

    def place(self, client: int) -> int | None:
        """Returns the place of a client's group in the list of groups; None if it is in none."""
        return None if self._of is None or self._of[client] < 0 else int(self._of[client])

    def of(self, client: int) -> ClientGroup | None:
        """Returns a client's group; None if it is in none."""
        return None if (place := self.place(client)) is None else self._groups[place]

    def name(self, client: int) -> str | None:
        """Returns the name of a client's group; None if it is in none."""
        return None if (group := self.of(client)) is None else group.name

    def local(self, client: int) -> Local:
        """Returns how a client trains."""
        return self._local if (place := self.place(client)) is None else self._locals[place]

    def levels(self, exits: int) -> dict[int, float]:
        """Returns the level of each client whose group has one. exits: as in `OwnSize.level`."""
        places = [] if self._of is None else self._of.tolist()
        owns = [group.model for group in self._groups]
        pairs = ((client, owns[place]) for client, place in enumerate(places) if place >= 0)
        return {client: own.level(exits) for client, own in pairs if isinstance(own, OwnSize)}

    def keys(self, models: Mapping[str, ModelPart]) -> dict[int, str]:
        """Returns the key of each client's model whose architecture is another one than the server's.

        models: as `architectures` returns them.
        """
        of = {place: key for place, one in enumerate(self._groups) for key in models if models[key] == one.model}
        return {client: of[place] for client, place in enumerate([] if self._of is None else self._of) if place in of}

    @property
    def members(self) -> dict[str, list[int]]:
        """The numbers of the clients in each group, by its name."""
        found = enumerate(self._groups) if self._of is not None else ()
        return {group.name: np.flatnonzero(self._of == place).tolist() for place, group in found}


def architectures(groups: Sequence[ClientGroup], servers: ModelPart) -> dict[str, ModelPart]:
    """Returns the models of groups that are of other architectures than the server's, each by the name of the first
    group that has it."""
    found: dict[str, ModelPart] = {}
    for group in groups:
        if isinstance(group.model, ModelPart) and group.model not in (servers, *found.values()):
            found[group.name] = group.model
    return found


class Architectures:
    """Which model each client has, where groups have models of other architectures than the server's."""

    def __init__(self, keys: Mapping[int, str], costs: Mapping[ModelKey, LevelCost], clients: int) -> None:
        """keys: as `ClientGroups.keys` returns them. costs: of the model of each key, the server's first."""
        self._keys, self._costs, self._clients = keys, costs, clients

    def of(self, client: int, number: int | None = None) -> ModelKey:
        """Returns the key of a client's model, which is the same at each of its dispatches."""
        return self._keys.get(client, 1.0)

    @property
    def facts(self) -> dict[str, dict[str, Any]]:
        """What run.json says of each model: how many clients have it, and what it costs."""
        counts = Counter(map(self.of, range(self._clients)))
        named = {"server" if key == 1.0 else str(key): (key, cost) for key, cost in self._costs.items()}
        return {name: {"clients": counts[key], **cost._asdict()} for name, (key, cost) in named.items()}
