"""A report on runs: one HTML page with SVG figures, which needs no other file."""

from results.report.page import Report, report

__all__ = ["Report", "report"]
