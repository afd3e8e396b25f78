"""Which metrics are better when they are larger."""

LARGER_IS_BETTER = {"accuracy": True, "loss": False}
"""Whether a larger value of a metric is the better one. A metric that is missing here has no known direction."""
