"""The rows of the tables of server steps, updates and evaluations: a class for each, whose fields are its columns."""

from dataclasses import dataclass

from results.columns import Int, Long, Number, Text, column, optional

TIME = "rounds or seconds, as world.delay.unit says"
_STALENESS = "rounds or server steps, as world.staleness says; virtual time between peers"
_UNUSED = "null if the update was not used, and in a dry run."


# Rows are not frozen, because frozen ones take five times as long to make.
@dataclass(slots=True, kw_only=True)
class Row:
    """A row of a table, without the run's id, which the writer adds as column `run`."""


@dataclass(slots=True, kw_only=True)
class TimedRow(Row):
    """A row about something that happened on the timeline."""

    step: Int = column("How many server steps, or rounds of peers, were done by then; a step's own rows count it.")
    round: Int = column("The round in which it happened, counted from 0.")
    virtual_time: Number = column("The simulated time at which it happened.", unit=TIME)


@dataclass(slots=True, kw_only=True)
class StepRow(TimedRow):
    """One row for each server step or, without a server, for each round of peers."""

    used: Int = column("How many updates the step used, or how many times peers mixed in the round.")
    discarded: Int = column("How many updates were discarded for being late since the step before.")
    in_flight: Int = column("How many dispatches were under way after the step, or how many peers were at work.")
    staleness_mean: Number | None = optional(
        "Mean staleness of the updates used, or mean age of the messages mixed; null if there were none.",
        unit=_STALENESS,
    )
    staleness_max: Number | None = optional(
        "Largest staleness of the updates used, or largest age of the messages mixed; null if there were none.",
        unit=_STALENESS,
    )
    up_bytes: Long | None = optional(
        "Size of all updates that the step used, or of all messages that peers sent; null in a dry run that need not "
        "know it.",
        unit="bytes",
    )
    down_bytes: Long | None = optional(
        "Size of all messages that the clients of those updates had received, or of the peers' messages that were "
        "not lost; null in a dry run that need not know it.",
        unit="bytes",
    )
    samples: Long = column("How many training samples the clients of those updates, or the peers, hold.")
    client_flops: Number | None = optional(
        "What clients computed for those updates, or peers in the round: passes through the network, where a "
        "backward pass costs two, and nothing else; null in a dry run, and where a pass cannot be counted.",
        "estimated",
        unit="floating-point operations",
    )
    server_flops: Number | None = optional(
        "What the server computed: passes through the network and sums of vectors; null without a server and in a "
        "dry run.",
        unit="floating-point operations",
    )
    cache_bytes: Long | None = optional(
        "What the server keeps: the model with its frozen parameters, what else the algorithm needs, and a "
        "full buffer of updates; null without a server and in a dry run.",
        unit="bytes",
    )
    similarity: Number | None = optional(
        "Where Feddle's search starts, the cosine between the coefficients' gradients on the server's data and on "
        "in-domain reference samples; null without such samples.",
        "logged",
    )
    clip: Number | None = optional(
        "Largest norm that an update of the step could have; null without a release, and in a dry run.", "sparse"
    )
    clipped_share: Number | None = optional(
        "Share of the updates that the last clip_norm of `uplink` shortened; null without one, and in a dry run.",
        "derived",
    )
    noise_std: Number | None = optional(
        "Standard deviation of the noise in each entry of the sum that the server's rule gets; null without a release, "
        "and in a dry run.",
        "sparse",
    )
    signal_norm: Number | None = optional(
        "Norm of that sum before the noise; null without a release, and in a dry run.", "sparse"
    )
    epsilon: Number | None = optional(
        "Epsilon of the most exposed client after the step; null without `privacy`, without noise, and where an "
        "accountant counts that clients are sampled.",
        "sparse",
    )
    seconds: Number | None = optional(
        "Real time of the step, or of all mixing in the round; null in a dry run.", "wall", unit="s"
    )
    elapsed_s: Number | None = optional(
        "Real time from when the first job was handed out until this row was written; null in a dry run.",
        "wall",
        unit="s",
    )


@dataclass(slots=True, kw_only=True)
class UpdateRow(TimedRow):
    """One row for each dispatch or, without a server, for each time that a peer trained and mixed."""

    client: Int = column("The client or peer.")
    dispatch: Int = column("The dispatch's serial number in the run.")
    status: Text = column(
        "What became of the update: used by a step, discarded for being late, dropped because the client never "
        "reported, or unfinished because the run ended first."
    )
    dispatched_at: Number = column("When the client received the model, or when the peer began.", unit=TIME)
    arrived_at: Number | None = optional(
        "When the update arrived, or when the peer had trained; null if it did not arrive.", unit=TIME
    )
    version: Int = column(
        "Version of the model that the client received, which is the number of server steps before it. Without a "
        "server: how many times the peer had mixed before."
    )
    staleness: Number = column(
        "How old the received model was when the update arrived, or when the dispatch ended without an arrival. "
        "Without a server: the mean age of the messages mixed, 0 if there were none.",
        unit=_STALENESS,
    )
    weight: Number | None = optional(
        "The update's weight in the server's sum; null if it was not used or the server took no weighted sum."
    )
    level: Number | None = optional(
        "Width of the client's model, as a share of the server's; null where all clients train that.", "sparse"
    )
    samples: Long = column("How many training samples the client holds.")
    local_steps: Int | None = optional(f"How many optimiser steps it took; {_UNUSED}")
    samples_seen: Long | None = optional(
        "How many samples it took gradients of, repeats counted; null without a server, if the update was not "
        "used, and in a dry run."
    )
    loss_before: Number | None = optional(f"Loss of the first mini-batch, before training; {_UNUSED}", "logged")
    loss_after: Number | None = optional(
        "Loss of the last mini-batch, before its step, or of all samples if training stopped at a tolerance; "
        f"{_UNUSED}",
        "logged",
    )
    residual: Number | None = optional(
        "Norm of the local problem's gradient when last measured; null in algorithms without a tolerance.", "logged"
    )
    tolerance: Number | None = optional(
        "Residual at which training was to stop; null in algorithms without a tolerance.", "logged"
    )
    penalty: Number | None = optional("The client's penalty beta_i in ADMM; null in other algorithms.", "logged")
    norm_before: Number | None = optional(
        "Norm of what the transforms of `uplink` take of the update; null without any, and as above.", "derived"
    )
    norm_after: Number | None = optional("Norm of what the receiver decodes of that; null likewise.", "derived")
    relative_error: Number | None = optional(
        "Norm of the difference between both, as a share of the first; null likewise, and where that is 0.", "derived"
    )
    memory_norm: Number | None = optional(
        "Norm of the memory that such a transform keeps for the client's next update, or of the copy that ef21 adds "
        "to; null without a memory.",
        "derived",
    )
    clipped: Number | None = optional(
        "1 if the last clip_norm of `uplink` shortened the update, else 0; null without one, and as above.", "derived"
    )
    elias_bytes: Long | None = optional(
        "Size of the levels of `qsgd` in Elias' code, which up_bytes and delays do not count, because it is not known "
        "beforehand; null without it, and as above.",
        "derived",
        unit="bytes",
    )
    solver_iterations: Number | None = optional(
        "Mean number of iterations of a solve in deep equilibrium layers; null in models without any."
    )
    solver_residual: Number | None = optional(
        "Largest relative residual that a solve left; null in models without deep equilibrium layers."
    )
    unconverged: Long | None = optional(
        "How many solves, one for each sample of a batch, left more than the tolerance; null in models without "
        "deep equilibrium layers."
    )
    up_bytes: Long | None = optional(
        "Size of the update, or of the peer's messages to all neighbours; null if the update was not used, and in a "
        "dry run that need not know it.",
        unit="bytes",
    )
    down_bytes: Long | None = optional(
        "Size of the message that the client received; null without a server, if the update was not used, and in "
        "a dry run that need not know it.",
        unit="bytes",
    )
    seconds: Number | None = optional(f"Real time of the training; {_UNUSED}", "wall", unit="s")
    worker: Text | None = optional(f"The worker that trained; {_UNUSED}", "wall")


@dataclass(slots=True, kw_only=True)
class EvaluationRow(TimedRow):
    """One row for each metric of each model that was evaluated."""

    subject: Text = column(
        "Whose model was evaluated: global, the server's model; slice, a narrower model that it holds; group, the "
        "server's model for groups of another architecture; client, what one client predicts with; unseen, what a "
        "client predicts with that took no part and adapted to the last model; peer, one peer's model; peers, all "
        "evaluated peers together."
    )
    member: Int | None = optional(
        "The client or peer, the number of the slice, or the place of the first group with the architecture in "
        "`clients`; null for the subjects global and peers."
    )
    group: Int | None = optional(
        "The place of the client's group in `clients`; null for the subject global, for clients in no group, and where "
        "all clients have one architecture.",
        "sparse",
    )
    level: Number | None = optional(
        "Width of the model, as a share of the server's; null for the subject global, and where all clients train the "
        "server's model.",
        "sparse",
    )
    picked: Int | None = optional(
        "How often the client had taken part by then, which is how many of its updates server steps had used. "
        "With 0, it still predicts with what it began with; null for all subjects but client.",
        "sparse",
    )
    split: Text = column("The samples it was evaluated on: test, train or validation.")
    metric: Text = column(
        "accuracy, a fraction, in which predictions of NaN are wrong; loss, a mean over samples; in models with "
        "deep equilibrium layers, iterations, a mean over solves, and unconverged, the fraction of solves that "
        "left more than the tolerance; and those that run.metrics asks for. For the subject peers, a plain name "
        "is the mean over peers, and _min, _max and _gap follow it for the smallest value, the largest and their "
        "difference; consensus is the root mean square distance of the peers' parameters from their mean, and "
        "consensus_outputs that of their predicted probabilities on one input."
    )
    value: Number | None = optional(
        "The metric's value; null where it is not defined, such as the area under the ROC curve where all samples "
        "have one label."
    )
    samples: Long = column(
        "How many predictions were evaluated, usually one for each sample; 0 for consensus and consensus_outputs."
    )
