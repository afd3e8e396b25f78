"""The power of clients, or peers, while they are under way, by which runs are compared at equal energy."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING, Any

from raysim.parts.errors import Problem
from raysim.parts.rng import Stream
from results.texts import quoted

if TYPE_CHECKING:
    from raysim.scenario.schema import Scenario


def watts_of(scenario: Scenario) -> float | list[float] | None:
    """Returns the power of any client, or a list with that of each, in W; None if the scenario does not say."""
    clients, groups = scenario.data.clients, scenario.groups
    of_devices = scenario.world.delay.watts(Stream(scenario.seed, "delay"), clients)
    power = scenario.world.watts or of_devices
    if power is None or not any(group.watts for group in scenario.clients):
        return list(power) if isinstance(power, tuple) else power
    each = [power] * clients if isinstance(power, float) else list(power)
    for client in range(clients):
        if (group := groups.of(client)) and group.watts:
            each[client] = group.watts
    return each


def watts_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields what is wrong with the power that a scenario gives its clients, without reading a trace."""
    world, clients = scenario.world, scenario.data.clients
    of_groups = {f"clients.{place}.watts": group.watts for place, group in enumerate(scenario.clients) if group.watts}
    given = {**({"world.watts": world.watts} if world.watts else {}), **of_groups}
    if world.delay.unit != "seconds":
        text = "needs delays in seconds, which energy is power times, got rounds; set world.delay.unit, or leave it out"
        yield from (Problem(key, text) for key in given)
    if isinstance(world.watts, tuple) and len(world.watts) != clients:
        text = f"must have one number for each of {clients} clients, got {len(world.watts)}; give one number for all"
        yield Problem("world.watts", text)


def require_each(power: Any, clients: int, delay: str) -> None:
    """Raises ValueError if what a delay returns as the power of clients is not one positive number for each."""
    if power is None:
        return
    must = f"must be None or a list with a positive number for each of {clients} clients, as {delay}.watts returns it"
    if not isinstance(power, list) or len(power) != clients:
        raise ValueError(f"{must}, got {f'a list of {len(power)}' if isinstance(power, list) else quoted(power)}")
    if wrong := [one for one in power if not (isinstance(one, int | float) and 0 < one < inf)]:
        raise ValueError(f"{must}, got {quoted(wrong[0])} among them")


def require_power(scenario: Scenario) -> None:
    """Raises ValueError if groups have power and other clients have none. It may read the file of a trace."""
    if any(group.watts for group in scenario.clients) and watts_of(scenario) is None:
        raise ValueError("must say the power of all clients where groups have watts, got null; give one number")
