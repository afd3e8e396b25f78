"""What `raysim doctor` finds out before a run: what each node has, what is wrong, and what a client needs."""
