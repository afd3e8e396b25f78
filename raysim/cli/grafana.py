"""The dashboard of raysim in Grafana, made of what runs and their workers measure."""

from __future__ import annotations

from typing import Any, NamedTuple

from actors.instrument import BUSY, DEATHS, DONE, JOBS, WORKERS, Instrument
from raysim.observers.gauges import (
    IN_FLIGHT,
    MESSAGES,
    METRIC,
    ROUND,
    ROUNDS,
    STALENESS,
    STEPS,
    UPDATES,
    VIRTUAL_TIME,
)

FILE = "raysim.json"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
COLUMNS, HEIGHT = 3, 8  # panels in a line, and how high they are, in Grafana's grid of 24 columns


class Graph(NamedTuple):
    """A panel with one line for each series that its query finds."""

    title: str
    query: str
    legend: str
    text: str
    unit: str = "short"  # one of Grafana's
    least: float | None = 0
    stacked: bool = False


def of(instrument: Instrument, *labels: str) -> str:
    """Returns the query of an instrument's series. labels: conditions beside that on the run."""
    conditions = ", ".join(['run=~"$run"', *labels])
    return f"{instrument.in_prometheus}{{{conditions}}}"


def speed(instrument: Instrument, *labels: str) -> str:
    """Returns the query of how much a counter grows in a second."""
    return f"rate({of(instrument, *labels)}[$__rate_interval])"


PLACED = 'node!=""'
TRAINING = 'task=~"train|mix"'
OF_RAY = "Measured by Ray for all that uses the cluster."
RUNS = [
    Graph("Rounds done", f"{of(ROUND)} / {of(ROUNDS)}", "{{run}}", ROUND.description, "percentunit"),
    Graph("Metrics", of(METRIC, 'metric!="loss"'), "{{metric}} {{run}}", METRIC.description, least=None),
    Graph("Loss", of(METRIC, 'metric="loss"'), "{{run}}", METRIC.description, least=None),
    Graph("Virtual time", of(VIRTUAL_TIME), "{{run}}", VIRTUAL_TIME.help),
    Graph("Clients in flight", of(IN_FLIGHT), "{{run}}", IN_FLIGHT.description),
    Graph("Staleness", of(STALENESS), "{{run}}", STALENESS.help),
    Graph("Trainings a second", speed(UPDATES, 'status="used"'), "{{run}}", UPDATES.description),
    Graph("Updates by what became of them", of(UPDATES), "{{status}} {{run}}", UPDATES.description),
    Graph("Server steps a second", speed(STEPS), "{{run}}", STEPS.description),
]
WORK = [
    Graph(
        "Workers by what they do",
        f"sum by (group, state) ({of(WORKERS)})",
        "{{group}} {{state}}",
        WORKERS.description,
        stacked=True,
    ),
    Graph("Workers by node", f"sum by (node) ({of(WORKERS)})", "{{node}}", WORKERS.description, stacked=True),
    Graph("Jobs that wait and run", f"sum by (group, state) ({of(JOBS)})", "{{group}} {{state}}", JOBS.description),
    Graph(
        "Share of time at work, by node",
        f"sum by (node) ({speed(BUSY, PLACED)}) / sum by (node) ({of(WORKERS, PLACED)})",
        "{{node}}",
        BUSY.description,
        "percentunit",
    ),
    Graph(
        "Time of a training job, by node",
        f"sum by (node) ({speed(BUSY, TRAINING, PLACED)}) / sum by (node) ({speed(DONE, TRAINING, PLACED)})",
        "{{node}}",
        f"{DONE.description} A slow node has a line above the others.",
        "s",
    ),
    Graph("Deaths of workers", f"sum by (group, node) ({of(DEATHS)})", "{{group}} {{node}}", DEATHS.description),
]
BYTES = [
    Graph("Simulated messages", speed(MESSAGES), "{{direction}} {{run}}", MESSAGES.description, "Bps"),
    Graph(
        "Object store, by node",
        "sum by (NodeAddress, Location) (ray_object_store_memory)",
        "{{NodeAddress}} {{Location}}",
        f"What the object store holds: models, updates and states of clients. {OF_RAY}",
        "bytes",
        stacked=True,
    ),
    Graph(
        "Bytes between nodes",
        "sum by (NodeAddress, Type) (rate(ray_object_manager_bytes[$__rate_interval]))",
        "{{NodeAddress}} {{Type}}",
        f"What the object stores of nodes send to each other. {OF_RAY}",
        "Bps",
    ),
]


def dashboard() -> dict[str, Any]:
    """Returns the dashboard, as Grafana's JSON model has it."""
    panels: list[dict[str, Any]] = []
    line = 0
    for title, group in {"Runs": RUNS, "Workers and jobs": WORK, "Bytes": BYTES}.items():
        panels.append(
            {"type": "row", "title": title, "collapsed": False, "panels": [], "gridPos": _place(line, 0, 24, 1)}
        )
        for number, panel in enumerate(group):
            row, column = divmod(number, COLUMNS)
            width = 24 // COLUMNS
            panels.append(_panel(panel) | {"gridPos": _place(line + 1 + row * HEIGHT, column * width, width, HEIGHT)})
        line += 1 + -(-len(group) // COLUMNS) * HEIGHT
    return {
        "uid": "raysim",
        "title": "raysim",
        "tags": ["ray", "raysim"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,  # one moment is marked in all panels
        "refresh": "10s",
        "time": {"from": "now-30m", "to": "now"},
        "timezone": "browser",
        "templating": {"list": [_datasource(), _runs()]},
        "panels": [panel | {"id": number} for number, panel in enumerate(panels, start=1)],
    }


def _place(line: int, column: int, width: int, height: int) -> dict[str, int]:
    return {"x": column, "y": line, "w": width, "h": height}


def _panel(panel: Graph) -> dict[str, Any]:
    drawn = {"lineWidth": 2, "fillOpacity": 20 if panel.stacked else 0, "showPoints": "never", "spanNulls": False}
    stacking = {"mode": "normal" if panel.stacked else "none", "group": "A"}
    defaults: dict[str, Any] = {"unit": panel.unit, "noValue": "none so far", "custom": drawn | {"stacking": stacking}}
    return {
        "type": "timeseries",
        "title": panel.title,
        "description": panel.text,
        "datasource": SOURCE,
        "targets": [{"refId": "A", "datasource": SOURCE, "expr": panel.query, "legendFormat": panel.legend}],
        "fieldConfig": {"defaults": defaults | ({} if panel.least is None else {"min": panel.least}), "overrides": []},
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
    }


def _datasource() -> dict[str, Any]:
    return {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "hide": 0}


def _runs() -> dict[str, Any]:
    return {
        "name": "run",
        "label": "Run",
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": f"label_values({ROUNDS.in_prometheus}, run)", "refId": "runs"},
        "refresh": 2,  # whenever the time range changes
        "sort": 2,  # the latest first
        "multi": True,
        "includeAll": True,
        "allValue": ".+",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
    }
