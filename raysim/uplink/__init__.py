"""Transforms of what clients send to the server, or peers to each other, and how many bytes then travel."""

from raysim.uplink.transforms import UPLINKS
from raysim.uplink.uplink import Decoded, Size, Uplink, UplinkPoint

__all__ = ["UPLINKS", "Decoded", "Size", "Uplink", "UplinkPoint"]
