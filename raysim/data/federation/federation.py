"""The data of a whole federation: who holds which samples, as plain arrays that every worker can share."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from raysim.data.dataset import IGNORED, Dataset, Split, first_rows, held_out_size
from raysim.data.federation.holdings import Holdings, divide_alike, hold_out, set_aside
from raysim.data.federation.server import NO_PUBLIC, Public, ServerData, ServerSamples
from raysim.data.federation.skew import FeatureSkew, mislabel
from raysim.data.loaded import load
from raysim.data.meaning import NamedArrays, together
from raysim.data.sources.inputs import scaled_by
from raysim.data.sources.source import Source
from raysim.parts.errors import BadValue, located
from raysim.parts.rng import Stream, generator


@dataclass(frozen=True, kw_only=True)
class Federation(Dataset):
    """A data set that is divided among the clients, the server and the public samples. All workers of a node share one.

    held: the rows of `train` that each client trains on. held_out: the rows of the split `tested` on which it tests its
    own model. aside: the rows of `train` that each client sets aside for validation. validation: copies of all samples
    that clients and the server set aside; there may be none. participants: how many clients, the first ones, may take
    part in training; the others are unseen.
    evaluation_rows: the rows of `test` that evaluate models: those that neither the server nor the public samples took
    and, if `tested` is "test", that some client tests on. server: the server's samples, copied. public: the public
    samples, copied; there may be none. skew: how clients' inputs differ; None: not at all. seed: that of the scenario.
    """

    held: Holdings
    held_out: Holdings
    tested: Literal["train", "test"]
    aside: Holdings
    validation: Split
    participants: int
    evaluation_rows: np.ndarray
    server: ServerSamples
    public: Split
    skew: FeatureSkew | None = None
    seed: int = 0

    @property
    def clients(self) -> int:
        """Number of clients, including unseen ones."""
        return self.held.clients

    @property
    def samples(self) -> np.ndarray:
        """Number of samples that each client trains on, int64 (clients,). A client with none never takes part."""
        return np.where(np.arange(self.clients) < self.participants, self.held.sizes, 0)

    @property
    def smallest(self) -> int:
        """The client with the fewest samples to train on, among those that have any."""
        return int(np.where(self.samples > 0, self.samples, self.samples.max()).argmin())

    @property
    def largest(self) -> int:
        """The client with the most samples to train on."""
        return int(self.samples.argmax())

    @property
    def unseen(self) -> np.ndarray:
        """Clients that hold samples but never take part in training, int64."""
        return np.arange(self.participants, self.clients)

    @property
    def training_rows(self) -> np.ndarray:
        """Rows of `train` that clients train on, client after client."""
        return self.held.rows[: self.held.offsets[self.participants]]

    @property
    def constant(self) -> dict[str, float]:
        """What the best constant prediction scores on the test samples, by metric, and how many labels these have: the
        majority class or the share of each, or the mean target."""
        y = self.test.y[self.evaluation_rows]
        if self.loss == "squared_error":
            return {"loss": float(y.var(axis=0, dtype=np.float64).mean() / 2), "samples": len(y)}
        if self.loss == "binary_cross_entropy":
            ones = y.mean(axis=0, dtype=np.float64)
            shares = np.stack([ones, 1 - ones])
        elif self.loss == "cross_entropy":
            y = y[y != IGNORED]
            shares = np.bincount(y)[:, None] / len(y)
        else:
            return {}
        loss = -np.sum(shares * np.log(np.where(shares > 0, shares, 1.0)), axis=0)
        return {"accuracy": float(shares.max(axis=0).mean()), "loss": float(loss.mean()), "samples": y.size}

    def train_rows(self, client: int) -> np.ndarray:
        """Returns the rows of `train` that a client trains on or, if it is unseen, adapts a model to."""
        return self.held[client]

    def local_test(self, client: int) -> tuple[Split, np.ndarray]:
        """Returns the split on which a client tests its own model, and its rows of that split."""
        return (self.test if self.tested == "test" else self.train), self.held_out[client]

    def evaluates_on(self, client: int) -> dict[str, tuple[Split, np.ndarray]]:
        """Returns on what a client's own model is evaluated: samples and their rows, under "test" and, if it sets
        samples aside, under "validation"."""
        aside = self.aside[client]
        return {"test": self.local_test(client)} | ({"validation": (self.train, aside)} if len(aside) else {})

    def skewed(self, x: np.ndarray, split: Split, rows: np.ndarray, client: int) -> np.ndarray:
        """Returns inputs, as `FeatureSkew.change` takes them, in the form in which a client has them.

        rows: the rows of the split that hold them.
        """
        if self.skew is None:
            return x
        stream, tested = Stream(self.seed, "feature skew"), int(split is self.test)
        return self.skew.change(x, client, self.clients, lambda place: stream(client, int(rows[place]), tested))

    def partition_table(self) -> dict[str, np.ndarray]:
        """Counts samples by client, split and label. Combinations without samples are left out.

        Returns columns of equal length: client int32; split str, "train", "test", which are the samples that the client
        tests its own model on, or "validation", which are those that it sets aside; label int32, 0 where the data have
        none; samples int64.
        """
        tested, labels = (self.test if self.tested == "test" else self.train), self.train.labels
        tables = [self.held.count(labels), self.held_out.count(tested.labels), self.aside.count(labels)]
        client, label, samples = np.concatenate(tables, axis=1)
        split = np.repeat(["train", "test", "validation"], [table.shape[1] for table in tables])
        return {"client": client.astype(np.int32), "split": split, "label": label.astype(np.int32), "samples": samples}


def federate(data: Source, server_data: ServerData, seed: int, public: Public = NO_PUBLIC) -> Federation:
    """Loads the data set and divides it among the clients, the server and the public samples.

    Each of them has its own random draws from the seed. Raises BadInput if the data are not on this machine, damaged,
    or cannot be divided as the settings say.
    """
    with located("data"):
        dataset = load(data)
    return divide(dataset, data, server_data, seed, public)


def divide(
    dataset: Dataset, data: Source, server_data: ServerData, seed: int, public: Public = NO_PUBLIC
) -> Federation:
    """Divides a loaded data set as `federate` does. Raises BadInput if the settings do not fit it."""
    with located("data.partition"):
        held, held_out, tested = _divide(data, dataset, seed)
    trained = held.rows[: held.offsets[data.participants]]
    evaluated = np.unique(held_out.rows) if tested == "test" else np.arange(len(dataset.test))
    available = {"train": np.unique(trained), "test": evaluated}
    with located("server_data"):
        server, taken = server_data.draw(dataset, available, generator(seed, "server data"))
    with located("public"):
        shared, places = _shared(data, dataset, public)
        public_rows = public.draw(shared, generator(seed, "public"))
    if public.split == "test":
        taken = {**taken, "test": np.append(taken["test"], public_rows)}
    held, held_out = held.without(taken["train"]), held_out.without(taken[tested])
    never_aside = np.flatnonzero(np.isin(places, public_rows))
    held, aside = set_aside(held, data.participants, data.validation, never_aside, seed)
    server, validation = _validation(data.validation, dataset.train.take(aside.rows), server, seed)
    evaluation_rows = evaluated[~np.isin(evaluated, taken["test"])]
    with located("data"):
        if not len(evaluation_rows):
            text = "must leave test samples that evaluate models, got none that is some client's"
            raise BadValue(f"{text} for {data.local_test!r}; take a share, such as 0.2", "local_test")
        if data.validation and not len(validation):
            text = f"must set a sample aside, got none for {data.validation!r}, because no client has two samples"
            raise BadValue(f"{text}; give clients more of them, or leave it out", "validation")
        train = replace(dataset.train, y=_labels(data, dataset, held, seed))
        skew = _skew(data, dataset)
    return Federation(
        **{**vars(dataset), "train": train},
        held=held,
        held_out=held_out,
        tested=tested,
        aside=aside,
        validation=validation,
        participants=data.participants,
        evaluation_rows=evaluation_rows,
        server=server,
        public=shared.take(public_rows),
        skew=skew,
        seed=seed,
    )


def _shared(data: Source, dataset: Dataset, public: Public) -> tuple[Split, np.ndarray]:
    """Returns the samples that public ones are drawn from, and at which of their rows the training samples are."""
    if public.split == "test":
        return dataset.test, np.empty(0, dtype=np.int64)
    if public.from_all and public.samples and data.train_samples is not None:
        everything = data.model_copy(update={"train_samples": None}).load().train
        if dataset.standardise and dataset.meaning:  # as the clients' samples
            everything = replace(everything, x=scaled_by(everything.x, dataset.meaning.inputs))
        return everything, first_rows(everything.y, len(dataset.train), dataset.num_classes)
    return dataset.train, np.arange(len(dataset.train))


def _validation(share: float, of_clients: Split, server: ServerSamples, seed: int) -> tuple[ServerSamples, Split]:
    """Returns the server's samples without those that it sets aside, and all samples that are set aside.

    Samples of a server whose labels are not the clients' cannot validate models, so it keeps all of them.
    """
    if not share or not server.in_domain:
        return server, of_clients
    order = generator(seed, "server validation").permutation(len(server.split))
    size = held_out_size(len(order), share)
    aside, kept = np.sort(order[:size]), np.sort(order[size:])
    of_server = server.split.take(aside)
    both = Split(together(of_clients.x, of_server.x), np.concatenate([of_clients.y, of_server.y]))
    return replace(server, split=server.split.take(kept)), both


def _labels(data: Source, dataset: Dataset, held: Holdings, seed: int) -> np.ndarray:
    """Returns the training labels, of which some are wrong if the settings say so."""
    if not data.label_noise:
        return dataset.train.y
    if dataset.loss != "cross_entropy" or dataset.train.y.ndim > 1:
        raise BadValue("must be 0, because these data have no label for each sample; leave it out", "label_noise")
    if dataset.num_classes < 2 and data.noisy_labels == "wrong":
        raise BadValue("must be 0, because there is only one label; leave it out", "label_noise")
    if len(np.unique(held.rows)) < len(held.rows):
        text = "must be 0 where a sample is held several times: it has one label, which is wrong for all who hold it"
        raise BadValue(f"{text}; leave it out, or `overlap`", "label_noise")
    return mislabel(dataset.train.y, held, data.noise_shares(seed), dataset.num_classes, seed, data.noisy_labels)


def _skew(data: Source, dataset: Dataset) -> FeatureSkew | None:
    skew: FeatureSkew | None = data.skew
    if skew and isinstance(x := dataset.train.x, NamedArrays):
        text = f"{skew.name} changes one array of inputs, got several: {', '.join(x.keys())}; leave it out"
        raise BadValue(text, "skew")
    if skew and (wrong := skew.problems(dataset.train.x)):
        raise BadValue(f"{skew.name} {wrong[0]}", "skew")
    if skew and skew.moves and dataset.train.y.ndim > 2:
        text = f"{skew.name} moves pixels, and these data have a label for each, which stays where it is"
        raise BadValue(f"{text}; take noise", "skew")
    return skew


def _divide(data: Source, dataset: Dataset, seed: int) -> tuple[Holdings, Holdings, Literal["train", "test"]]:
    """Returns what clients train on, what they test on, and the split that they test on."""
    parts = data.divide(dataset.train, generator(seed, "partition"))
    if not any(map(len, parts[: data.participants])):
        text = f"a client that trains must get samples, got none for any of {data.participants}"
        raise BadValue(f"{text}; give some to one of them at least")
    if data.local_test == "test":
        draws = generator(seed, "test partition")
        tests = divide_alike(dataset.train, parts, dataset.test, data.partition.column, draws)
        return Holdings.by_client(parts), tests, "test"
    return *hold_out(parts, data.local_test, seed), "train"
