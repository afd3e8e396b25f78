"""Whether settings of local training fit a network, its data and its device."""

import torch

from raysim.local.gradients import Accumulate
from raysim.local.groups import grouped
from raysim.local.net import Net
from raysim.local.settings import Local
from raysim.parts.errors import BadValue


def fits(local: Local, net: Net) -> None:
    """Raises BadValue if a group matches nothing, samples cannot be augmented, or the device lacks a precision."""
    grouped(local.groups, 0.0, net, net.part(None))
    if net.pixels is None and (images := [one.name for one in local.augment if one.images]):
        text = f"works on images only for {', '.join(images)}, and the data have none; leave it out, or name a function"
        raise BadValue(text, "augment")
    if net.remembers and any(isinstance(one, Accumulate) for one in local.gradients):
        text = "must not accumulate where the model starts solves at a sample's last one; leave one of them out"
        raise BadValue(text, "gradients")
    gpu = net.device.type == "cuda"
    # The server's worker checks, too, and may be on a CPU; the scenario's own check wants a GPU for the clients.
    if local.precision == "tf32" and gpu and torch.cuda.get_device_capability(net.device) < (8, 0):
        text = "must be float32 or bfloat16, for TF32 needs a GPU of NVIDIA's Ampere generation or later, got tf32"
        raise BadValue(text, "precision")
    if local.precision == "bfloat16" and gpu and not torch.cuda.is_bf16_supported():
        raise BadValue("must be float32, for the GPU lacks bfloat16, got bfloat16", "precision")
