"""What the final language model of a run goes on with, for `run.generate`."""

from typing import Annotated

from pydantic import Field

from raysim.parts.part import Count, NonNegative, Part, Unit


class Generation(Part):
    """Texts that the final language model of a run goes on with, once the run is finished.

    Each prompt and what follows it is added to `generated.txt` in the run's folder, as `raysim generate` does. Draws
    depend on the scenario's seed. It needs data whose next tokens are predicted, such as with `causal_lm`.
    """

    prompts: Annotated[
        tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1, examples=[["to be", "the king"]])
    ]
    """The texts to go on with."""
    tokens: Annotated[Count, Unit("tokens")] = 100
    """Most tokens that are added to a prompt. The end of a text ends it sooner."""
    temperature: NonNegative = 0.0
    """0: the most probable token each time. 1: tokens are drawn by their probabilities. More: they are drawn more
    evenly."""
