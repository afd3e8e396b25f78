"""Groups of clients that differ, and what clients do that do not follow the algorithm."""

from raysim.clients.behaviours import BEHAVIOURS, Behaviour, Honest
from raysim.clients.group import ClientGroup, ClientGroups, group_problems

__all__ = ["BEHAVIOURS", "Behaviour", "ClientGroup", "ClientGroups", "Honest", "group_problems"]
