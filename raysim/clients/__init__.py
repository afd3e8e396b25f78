"""Groups of clients that differ, what clients do that do not follow the algorithm, and transforms of what they send."""

from raysim.clients.behaviours import BEHAVIOURS, Behaviour, Honest
from raysim.clients.group import ClientGroup, ClientGroups, group_problems
from raysim.clients.transforms import UPLINKS
from raysim.clients.uplink import Decoded, Size, Uplink, UplinkPoint

__all__ = [
    "BEHAVIOURS",
    "UPLINKS",
    "Behaviour",
    "ClientGroup",
    "ClientGroups",
    "Decoded",
    "Honest",
    "Size",
    "Uplink",
    "UplinkPoint",
    "group_problems",
]
