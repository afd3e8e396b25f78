"""What `raysim doctor` finds out before a run: what each node has, and whether what clients keep fits."""
