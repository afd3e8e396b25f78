"""Scenarios: their schema, loading them from files, and the checks that report what is wrong with one."""

from raysim.scenario.load import load_scenario, parse_scenario
from raysim.scenario.run_settings import Resources, RunSettings
from raysim.scenario.schema import Scenario

__all__ = ["Resources", "RunSettings", "Scenario", "load_scenario", "parse_scenario"]
