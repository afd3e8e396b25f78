"""Rules by which servers move their models, each in a file of its own. To add one, put it into `RULES`."""

from typing import Annotated

from raysim.algorithms.rules.adagrad import ServerAdagrad
from raysim.algorithms.rules.adam import ServerAdam
from raysim.algorithms.rules.amsgrad import ServerAMSGrad
from raysim.algorithms.rules.rule import ServerRule
from raysim.algorithms.rules.sgd import ServerSGD
from raysim.algorithms.rules.yogi import ServerYogi
from raysim.parts.part import OneOf

RULES: tuple[type[ServerRule], ...] = (ServerSGD, ServerAdagrad, ServerAdam, ServerYogi, ServerAMSGrad)
Rule = Annotated[ServerRule, OneOf(RULES, "raysim.server_rules")]

__all__ = [
    "RULES",
    "Rule",
    "ServerAMSGrad",
    "ServerAdagrad",
    "ServerAdam",
    "ServerRule",
    "ServerSGD",
    "ServerYogi",
]
