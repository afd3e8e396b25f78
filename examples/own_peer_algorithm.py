"""A custom algorithm without a server: gradient tracking, compared with DecFedAvg.

Nedić, Olshevsky, Shi, Achieving geometric convergence for distributed optimization over time-varying graphs, SIAM
Journal on Optimization 27, 2017 (DIGing, Algorithm 1). Difference: models are mixed after the step, not before it. Run
it with `python examples/own_peer_algorithm.py`; it takes a few seconds.
"""

import tempfile
from typing import Any

import raysim
from raysim.algorithms import Inbox, Peer, Record


class GradientTracking(Peer):
    """Peers mix their models and their estimates of the mean gradient, and step along the estimate."""

    name: str = "own_peer_algorithm:GradientTracking"

    def init(self, task: Any) -> Record:
        gradient = task.gradient(task.received)  # over all samples of the peer
        first = {"w": task.received.w, "buffers": task.received.buffers}
        return {**first, "gradient": gradient, "tracked": gradient}

    def samples_seen(self, local: Any, samples: int) -> int:  # for computed delays, which measure what `mix` does
        return 0

    def local(self, task: Any, state: Record) -> tuple[Record, Record]:
        stepped = state["w"] - task.local.lr * state["tracked"]
        message = {"w": stepped, "buffers": state["buffers"], "tracked": state["tracked"]}
        return {"gradient": state["gradient"]}, message

    def mix(self, task: Any, draft: Record, inbox: Inbox) -> Record:
        w, buffers = inbox.mixed("w"), inbox.mixed("buffers")
        gradient = task.gradient(task.received.replace(w=w, buffers=buffers))
        tracked = inbox.mixed("tracked") + gradient - draft["gradient"]
        return {"w": w, "buffers": buffers, "gradient": gradient, "tracked": tracked}


SCENARIO = {
    "name": "tracking",
    "data": {"name": "digits", "clients": 10, "partition": {"name": "classes", "per_client": 2}},
    "model": {"name": "mlp", "hidden": [32]},
    "topology": "ring",
    "local": {"lr": 0.2, "batch_size": None},
    "run": {"rounds": 200, "evaluate_every": 50},
}


def main() -> None:
    with tempfile.TemporaryDirectory() as out:
        for algorithm in ("decfedavg", "own_peer_algorithm:GradientTracking"):
            scenario = raysim.parse_scenario({**SCENARIO, "algorithm": algorithm})
            evaluations = raysim.run(scenario, out=out, inline=True).pandas("evaluations")
            last = evaluations[evaluations.step == evaluations.step.max()]
            peers = last.query("subject == 'peer' and metric == 'accuracy'").value
            apart = last.query("metric == 'consensus'").value.item()
            print(f"{algorithm:36} accuracy {peers.min():.3f} to {peers.max():.3f}, apart {apart:.4f}")


if __name__ == "__main__":
    main()
