"""The base of transforms that may have a memory of what is cut off."""

from typing import Literal

from raysim.uplink.uplink import Uplink


class Remembering(Uplink):
    """A transform that may have a memory of what is cut off. A subclass adds its `name`."""

    memory: Literal["none", "ef14"] = "none"
    """ef14: what this transform and the codecs after it cut off is added to the client's next update, or the peer's
    next message (Seide et al. 2014; Karimireddy et al. 2019). none: it is lost."""

    @property
    def remembers(self) -> bool:
        return self.memory != "none"
