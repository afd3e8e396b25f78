"""Scenarios: their schema, loading them from files, and the checks that report what is wrong with one."""

from raysim.scenario.load import load_scenario, parse_scenario
from raysim.scenario.schema import Resources, Scenario, Schedule

__all__ = ["Resources", "Scenario", "Schedule", "load_scenario", "parse_scenario"]
