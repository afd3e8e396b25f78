"""The blocks `privacy` and `release` of a scenario: which guarantee is accounted for, and all noise that can give it.
To add noise, put it into `RELEASES`."""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from raysim.parts.part import Count, OneOf, Part, Positive
from raysim.privacy.discrete import DiscreteRelease
from raysim.privacy.matrix import MatrixRelease
from raysim.privacy.release import GaussianRelease, Release, TreeRelease


class Privacy(Part):
    """What a run guarantees to clients, and when it ends because of that."""

    delta: Annotated[float, Field(gt=0, lt=1, examples=[1e-5])]
    """Delta of the guarantee: the probability with which epsilon may not hold."""
    unit: Literal["client", "sample"] = "client"
    """What is protected. client: all that a client sends, by the noise of `release`; a client that no step uses shows
    nothing. sample: one sample of a client, by the noise of `local.gradients: [{name: per_sample, ...}]`, whoever sees
    what the client sends, so that each update that arrives counts, used or not."""
    epsilon: Positive | None = None
    """The run ends before the first server step with which the most exposed client would have more than this epsilon.
    With `release.multiplier: auto`, it is what that client has at the end. null: no limit."""
    accountant: Literal["exact", "rdp", "pld"] = "exact"
    """exact: what all steps show of a client is one Gaussian mechanism, whose epsilon has a closed form. rdp and pld:
    Renyi divergences and privacy loss distributions of the package dp-accounting, raysim-fl[privacy], for sampled
    clients or, with unit: sample, for samples that `local.batches: poisson` draws."""
    sampling: Literal["auto", "none", "poisson"] = "auto"
    """poisson: each client takes part in each step with the same probability, drawn anew, and nobody sees who does,
    which lowers epsilon; for clients, it needs `world.dispatch.probability`, rounds that wait for all, and accountant
    rdp or pld. none: it is known who takes part when, as in every asynchronous run. auto: as the accountant asks."""
    population: Count | None = None
    """As if there were so many clients, from which a step samples. null: as many as there are."""
    cohort: Count | None = None
    """As if so many updates had been summed in a step, with the same mean: noise is scaled by the number of updates in
    a step over this. null: as many as there are."""

    @model_validator(mode="after")
    def _population_counts(self) -> Self:
        if self.population is not None and self.accountant == "exact":
            text = "exact counts what each client is used for, however many there are; leave it out, or take rdp or pld"
            raise ValueError(f"population goes with accountant rdp or pld, got exact with {self.population}: {text}")
        return self

    @model_validator(mode="after")
    def _counts_samples(self) -> Self:
        for key in ("epsilon", "population", "cohort") if self.unit == "sample" else ():
            if (got := getattr(self, key)) is not None:
                raise ValueError(f"{key} must be left out with unit: sample, got {got}; it is for clients")
        return self

    @model_validator(mode="after")
    def _accountant_fits(self) -> Self:
        if self.sampling != "auto" and (self.accountant == "exact") == (self.sampling == "poisson"):
            cure = "take rdp or pld" if self.sampling == "poisson" else "take exact, which is as small as any"
            got = f"{self.accountant} with sampling: {self.sampling}"
            raise ValueError(f"accountant must be rdp or pld with sampling: poisson, and else exact, got {got}; {cure}")
        return self


RELEASES: tuple[type[Release], ...] = (GaussianRelease, TreeRelease, MatrixRelease, DiscreteRelease)

ARelease = Annotated[
    Annotated[Release, OneOf(RELEASES)] | None, BeforeValidator(lambda value: None if value == "none" else value)
]
