"""The files that `raysim new` writes, under the names of these templates."""
