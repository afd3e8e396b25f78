"""The clients of `flower_job.py`. Flower's actors import this module by name, so that each loads the data once."""

import functools
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from jobs import JOBS, SEED, Job, load, network, normalize, split
from raw_torch import train as train_plainly
from torch import Tensor, nn

app = ClientApp()


class Loaded(NamedTuple):
    """What an actor holds for all clients."""

    job: Job
    images: Tensor  # (clients, samples, 1, 28, 28)
    labels: Tensor  # (clients, samples)
    model: nn.Module
    optimizer: torch.optim.SGD  # it has no state, so clients can share it


@functools.cache
def loaded(job_name: str, root: str) -> Loaded:
    torch.set_num_threads(1)
    job = JOBS[job_name]
    data, indices, model = load(Path(root)), split(job), network(job)
    images = torch.from_numpy(normalize(data.train_images)[indices])
    labels = torch.from_numpy(data.train_labels.astype(np.int64)[indices])
    return Loaded(job, images, labels, model, torch.optim.SGD(model.parameters(), lr=job.lr))


def of_message(message: Message) -> Loaded:
    config = message.content["config"]
    return loaded(config["job"], config["root"])


@app.query()
def load_data(message: Message, context: Context) -> Message:
    """Loads what the actor needs, before the clock starts."""
    of_message(message)
    return Message(RecordDict(), reply_to=message)


@app.train()
def train(message: Message, context: Context) -> Message:
    """Trains the client that the message is for."""
    job, images, labels, model, optimizer = of_message(message)
    config = message.content["config"]
    client = int(config.get("client", context.node_config["partition-id"]))
    generator = np.random.default_rng((SEED, config["server-round"], client))
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    train_plainly(model, optimizer, job, images[client], labels[client], generator)
    reply = {"arrays": ArrayRecord(model.state_dict()), "metrics": MetricRecord({"num-examples": job.samples})}
    return Message(RecordDict(reply), reply_to=message)
