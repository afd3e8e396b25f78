"""The sections of a report, in order."""

import pyarrow.compute as pc

from results.drawing import AXES
from results.report import draw
from results.report.section import EVALUATED, Section

_USED = pc.field("status") == "used"
_OWN = pc.field("subject").isin(["client", "unseen", "peer"]) & pc.is_valid(pc.field("value"))
_OF_SEVERAL = pc.is_valid(pc.field("level")) | (pc.field("subject") == "group") | pc.is_valid(pc.field("group"))

CURVES = Section(
    "curves",
    "Learning curves",
    "Metrics of the global model or, without a server, their mean over peers, and how far peers are apart. Bytes count "
    "the updates that were used and the messages that their clients had received; between peers, each message counts "
    "where it is sent and where it arrives. The runs of a group are averaged round by round.",
    EVALUATED,
    tuple(AXES),
    draw.curve,
    by=("metric", "split"),
)

SECTIONS = (
    CURVES,
    Section(
        "members",
        "Clients' and peers' own models",
        "What each client or peer predicts with was evaluated by itself; each has the same weight. Line: median. Band: "
        "from the 10 % to the 90 % quantile.",
        "evaluations",
        ("value",),
        draw.spread,
        by=("subject", "metric", "split"),
        rows=_OWN,
    ),
    Section(
        "ends",
        "Clients' and peers' own models at the end",
        "The last evaluation: all values of a group, from the lowest to the highest.",
        "evaluations",
        ("value",),
        draw.ranks,
        by=("subject", "metric", "split"),
        rows=_OWN,
    ),
    Section(
        "levels",
        "Models of several sizes or architectures",
        "Models of the server, and clients' own models where they are evaluated, by level, which is the width or depth "
        "as a share of the server's, or by group. {shown}",
        "evaluations",
        ("value",),
        draw.by_model,
        by=("subject", "metric", "split"),
        rows=_OF_SEVERAL & pc.is_valid(pc.field("value")),
        further=("level", "member", "virtual_time"),
        single=True,
    ),
    Section(
        "partition",
        "Who holds which data",
        "Training samples by client and label. The stronger a cell, the larger the label's share of the client's "
        "samples. {shown}",
        "partition",
        ("samples",),
        draw.matrix,
        rows=pc.field("split") == "train",
        further=("client", "label"),
        single=True,
        height=4.0,
    ),
    Section(
        "topology",
        "Topology",
        "Who sends to whom. {shown}",
        "exchanges",
        ("target",),
        draw.network,
        further=("source",),
        single=True,
        height=4.2,
    ),
    Section(
        "links",
        "Bytes by link",
        "The stronger a cell, the more bytes a peer sent to another, lost ones included. {shown}",
        "exchanges",
        ("bytes",),
        draw.links,
        rows=pc.is_valid(pc.field("bytes")),
        further=("source", "target"),
        single=True,
        height=4.0,
    ),
    Section(
        "dispatches",
        "What became of dispatches",
        "A dispatch sends the model to a client; for peers, it is a training. Its update is used by a step, discarded "
        "for being late, dropped because it was never reported, or unfinished when the run ended.",
        "updates",
        ("status",),
        draw.shares,
    ),
    Section(
        "staleness",
        "Staleness of the updates used",
        "How old the model was when the update arrived; for peers, the mean age of the messages mixed.",
        "updates",
        ("staleness",),
        draw.histogram,
        rows=_USED & (pc.field("staleness") >= 0),
    ),
    Section(
        "timeline",
        "Timeline of the start",
        "Each bar is a dispatch, from when the client received the model until its update arrived; at a cross, it was "
        "discarded. The short lines at the top are the server's steps, or the ends of the peers' rounds. {shown}",
        "updates",
        ("status",),
        draw.timeline,
        rows=pc.field("dispatch") < 4000,
        further=("client", "dispatch", "dispatched_at", "arrived_at"),
        single=True,
        height=5.5,
    ),
    Section(
        "updates",
        "Updates",
        "The updates that were used, of all runs of a group together. Line: median. Band: from the 10 % to the 90 % "
        "quantile.",
        "updates",
        ("loss_before", "loss_after", "local_steps", "weight", "residual", "tolerance", "penalty"),
        draw.spread,
        rows=_USED,
    ),
    Section(
        "utility",
        "Utility against epsilon",
        "How good models are at the end, by how much the run may show of its most exposed client.",
        EVALUATED,
        ("epsilon",),
        draw.against_epsilon,
        by=("metric", "split"),
    ),
    Section(
        "privacy",
        "Epsilon, noise and clipping",
        "Epsilon of the most exposed client, the noise in each entry of a step's sum, the norm of that sum before "
        "it, and the share of updates that were clipped. Line: median of the runs of a group.",
        "steps",
        ("epsilon", "noise_std", "signal_norm", "clipped_share"),
        draw.spread,
    ),
    Section(
        "exposed",
        "How exposed clients are, and why",
        "Each client at the end of the run. Epsilon grows with how many steps used it and with its squared weights: "
        "stale updates weigh less, and cost less.",
        "privacy",
        ("epsilon", "uses", "squared_weights"),
        draw.ranks,
    ),
    *(
        Section(
            f"own-{table}",
            f"The algorithms' own columns of {table}",
            "Numbers that the algorithms logged, of all runs of a group together. Line: median. Band: from the 10 % to "
            "the 90 % quantile.",
            table,
            ("own",),
            draw.spread,
        )
        for table in ("updates", "steps", "coefficients")
    ),
    Section(
        "coefficients",
        "Coefficients",
        "The server merges the updates that it keeps, its anchors, with coefficients that it searches on its own data. "
        "The fallback is where a search starts and what it is pulled back to. Line: median. Band: from the 10 % to the "
        "90 % quantile.",
        "coefficients",
        ("coefficient", "fallback", "norm"),
        draw.spread,
    ),
)
