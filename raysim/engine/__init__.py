"""The engine. It follows a timeline, submits its jobs ahead of time, and writes their results in timeline order."""
