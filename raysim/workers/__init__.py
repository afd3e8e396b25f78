"""The workers that actors host: they carry out the engine's jobs, as functions of the request."""
