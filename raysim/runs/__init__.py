"""Runs as a whole: starting, finding, resuming, forking and describing them, and the folder that each one writes."""
