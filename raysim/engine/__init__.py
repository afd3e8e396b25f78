"""What runs a timeline: hands its jobs to workers ahead of time, and writes what comes back in its order."""
