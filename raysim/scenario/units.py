"""The units of the numbers in a scenario file, which the names of their keys tell."""

import re

# The first pattern that matches the whole key decides.
_UNITS = {
    r"flops_per_s": "FLOP/s",
    r".*bytes_per_s": "bytes/s",
    r".*_s": "s",
    r".*epochs": "epochs",
    r"(.*_)?samples|samples_per_class|.*batch_size|reference|min_size": "samples",
    r"clients|evaluate_clients|per_round|concurrency|chunk|users": "clients",
    r"rounds|evaluate_every|redraw_every": "rounds",
    r"size|image_size": "pixels",
    r"gpus_.*": "GPUs",
    r"cpus_.*": "CPUs",
    r"length": "tokens",
    r"label_noise|local_test|unseen|test_share|probability|loss|on": "fraction",
}
_DRAWN = {"value", "sigma", "median", "mean", "low", "high", "delays"}  # keys of distributions


def unit(key: str, beside: set[str]) -> str:
    """Returns the unit of a number; empty if it has none. beside: the keys of the same block, this one included."""
    if key in _DRAWN and beside & {"unit", "redraw"} and not (key == "sigma" and "median" in beside):
        return "`unit`" if "unit" in beside else "s"
    if key in ("slot", "period"):
        return "virtual time"
    return next((unit for pattern, unit in _UNITS.items() if re.fullmatch(pattern, key)), "")
