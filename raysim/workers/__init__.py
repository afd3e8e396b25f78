"""What actors host: the numerics of every job, as functions of what they are given."""
