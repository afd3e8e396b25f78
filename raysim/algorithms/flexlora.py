"""Federated fine-tuning with adapters of clients' own ranks, by singular values (FlexLoRA).

Bai, Chen, Qian, Yao, Li, Federated fine-tuning of large language models under heterogeneous tasks and client resources,
NeurIPS 2024, arXiv 2402.11505. The server averages products, W = sum_i p_i B_i A_i = U S V^T, and a client of rank r
receives B = U_r S_r and A = V_r^T, of the r largest singular values.

Differences from the paper: which factor takes the singular values is not said in the text that could be had; here, B
does. alpha / r is the same for all ranks. The global model that is evaluated is what a client of the largest rank,
`lora.rank`, receives. Rows of A that belong to singular values of 0 stay as they were: B is 0 there, and any rows would
do. W is never made: singular values are found in the space of the stacked factors, which is exact.
"""

from raysim.algorithms.fedavg import by_samples
from raysim.algorithms.low_rank import LowRank, outside, stacked, within
from raysim.algorithms.signatures import Arrivals, Record, ServerTask, Task, Tensor, Traffic, Trip
from raysim.parts.lazy import torch


class FlexLoRA(LowRank):
    """The mean of the products of clients' adapters is cut to the rank of each client (Bai et al. 2024)."""

    name: str = "flexlora"

    def traffic(self, trip: Trip) -> Traffic:
        of_adapters = self.rank_in(trip.group, trip) * sum(one.numbers for one in trip.sizes.adapters)
        numbers = of_adapters + outside(trip.sizes) + trip.sizes.buffers
        return Traffic(up=4 * numbers, down=4 * numbers)

    def update(self, task: Task, message: Record, state: Record) -> tuple[Record, Record]:
        rank, model = self.rank(task), task.received
        trained = task.train(model.replace(within(model, rank)))
        return trained.send(w=within(trained.model, rank)), state

    def step(self, state: Record, arrivals: Arrivals, updates: Record, task: ServerTask) -> Record:
        w = updates["w"].new_tensor(by_samples(arrivals)) @ updates["w"]
        for pair in task.received.pairs:
            left, right = stacked(pair, updates["w"], arrivals)
            pair.put(w, *cut(left, right, pair.factors(state["w"])[0]))
            task.vector_flops += 4.0 * len(right) ** 2 * (left.shape[0] + right.shape[1])  # of both decompositions
        return {"w": w}


def cut(left: Tensor, right: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
    """Returns A (rank, inputs), with orthonormal rows, and B (outputs, rank), whose product is nearest to left @ right.

    left: (outputs, k). right: (k, inputs). before: A as it was, whose rows stay where singular values are 0; there, the
    decomposition leaves the rows open, and another LAPACK would give other ones.
    """
    outer, core = torch.linalg.qr(left.double())
    inner, other = torch.linalg.qr(right.T.double())
    u, sizes, v = torch.linalg.svd(core @ other.T)
    # Factors are float32, so what is below their rounding is 0. There may be fewer values than rows.
    rank = min(len(before), int((sizes > sizes[0] * 1e-7).sum()))
    a = torch.cat([(v[:rank] @ inner.T).float(), before[rank:]])
    return a, ((outer @ u)[:, :rank] * sizes[:rank]).float()
