"""The scenario: its schema, how a file becomes one, and how wrong ones are told."""

from raysim.scenario.load import load_scenario, parse_scenario
from raysim.scenario.schema import Resources, Scenario, Schedule

__all__ = ["Resources", "Scenario", "Schedule", "load_scenario", "parse_scenario"]
