"""Pools of workers, which run jobs in this process, in others of this machine, or in actors on a Ray cluster.

Nothing here knows of federated learning. Ray is loaded by `actors.session`,
`actors.connection` and what they import only.
"""

from actors.child import Child, ChildDied
from actors.job import Answer, Gang, Job, Query, Request, Setup, Took, Value
from actors.local import LocalPool
from actors.pool import (
    Group,
    InlinePool,
    JobFailed,
    MissingResources,
    Needs,
    Pool,
    SchedulerDied,
    ValuesLost,
    finished,
)
from actors.process import Machine, OnNode, Process, this_machine

__all__ = [
    "Answer",
    "Child",
    "ChildDied",
    "Gang",
    "Group",
    "InlinePool",
    "Job",
    "JobFailed",
    "LocalPool",
    "Machine",
    "MissingResources",
    "Needs",
    "OnNode",
    "Pool",
    "Process",
    "Query",
    "Request",
    "SchedulerDied",
    "Setup",
    "Took",
    "Value",
    "ValuesLost",
    "finished",
    "this_machine",
]
