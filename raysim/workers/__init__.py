"""What actors host: the computations of every job, as functions of the request."""
