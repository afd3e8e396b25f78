"""The language of parts: what a scenario file can name, raysim's own and users', and how it refuses wrong values."""
