"""The laws that parts keep, for `raysim test`: those of a user's own classes as well as those that come with raysim."""
