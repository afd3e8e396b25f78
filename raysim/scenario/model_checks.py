"""Checks of the model of a scenario, of models of groups, and of the samples that the server has."""

from collections.abc import Iterator

from raysim.algorithms import ALGORITHMS, Central
from raysim.data.federation.server import NoServerData, OutOfDomain
from raysim.models import MODELS
from raysim.parts.errors import Problem
from raysim.scenario.schema import Scenario
from raysim.terms import Moment
from raysim.uplink.noise import adapting
from raysim.uplink.uplink import memory_of, shadows_each


def model_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields where the model does not go with the data, the algorithm or other blocks."""
    data, model, public = scenario.data, scenario.model, scenario.public
    if not set(data.holds) & set(model.takes):
        text = f"{model.name} takes {' or '.join(model.takes)}, and {data.name} holds {' or '.join(data.holds)}"
        tokens = "text" in model.takes and "inputs" in type(data).model_fields
        cure = "say data.inputs: tokens if the data are tokens, or take" if tokens else "take"
        yield Problem("model.name", f"{text}; {cure} another of them")
    if model.norm != "average" and not model.normalises:
        text = f"must be average, because {model.name} has no normalisation, got {model.norm}; leave it out"
        yield Problem("model.norm", text)
    elif model.norm == "local" and not scenario.algorithm.keeps_personal:
        keep = ", ".join(one.model_fields["name"].default for one in ALGORITHMS if one.keeps_personal)
        text = f"must be average or frozen for {scenario.algorithm.name}, whose clients keep no part of the model, got "
        yield Problem("model.norm", f"{text}local; take one of {keep}: with fedper, it is FedBN")
    merges = isinstance(scenario.algorithm, Central) and scenario.algorithm.merges_adapters
    if model.lora is not None and model.lora.merge and not merges:
        text = f"must be false for {scenario.algorithm.name}, which merges no adapters, got true; leave it out"
        yield Problem("model.lora.merge", text)
    if data.holds == ("functions",) and public.samples:
        text = "must not be given with the quadratic data, where models predict nothing but their loss; leave it out"
        yield Problem("public", text)
    if public.from_all and public.split == "test":
        text = "must be false with `split: test`, because it is about training samples, got true; leave it out"
        yield Problem("public.from_all", text)
    if data.classes == 0 and public.alpha is not None:
        text = f"must not be given, because it skews labels, and {data.name} has none; leave it out"
        yield Problem("public.alpha", text)


def architecture_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields what is wrong with groups whose models are of other architectures than the server's."""
    if not scenario.clients:
        return
    algorithm, models = scenario.algorithm, scenario.models
    if models and not (isinstance(algorithm, Central) and algorithm.mixes_models):
        able = ", ".join(one.model_fields["name"].default for one in ALGORITHMS if getattr(one, "mixes_models", False))
        text = f"must be left out for {algorithm.name}, whose clients all have one architecture; take one of {able}"
        yield from (Problem(f"clients.{scenario.place_of(group)}.model", text) for group in models)
        return
    known = list(_of_model(scenario)) if models else []
    for group, model in models.items():
        for problem in _of_model(scenario.model_copy(update={"model": model})):
            if problem not in known:
                own = problem.path == "model" or problem.path.startswith("model.")
                at = f"clients.{scenario.place_of(group)}." if own else ""
                yield Problem(at + problem.path, problem.text)
    if models and scenario.capacity:
        yield Problem("capacity", "must be left out where groups have models of other architectures, got both")
    for stage, one in enumerate(scenario.downlink if models else ()):
        if memory_of(one) == "shadow" and not shadows_each(one):
            text = "must be client where groups have models of other architectures, got all; set it"
            yield Problem(f"downlink.{stage}.shadow", text)
    if not scenario.apart:
        return
    if (place := adapting(scenario.uplink)) is not None:
        text = "must be left out where the server has models of several architectures, whose updates have other norms"
        yield Problem(f"uplink.{place}.adapt", text)
    if (weights := getattr(algorithm, "weights", "samples")) not in ("samples", "uniform"):
        text = f"must be samples or uniform where the server has models of several architectures, got {weights}"
        yield Problem("algorithm.weights", text)


def _of_model(scenario: Scenario) -> Iterator[Problem]:
    """Yields what is wrong with the scenario's model, alone and beside other blocks."""
    yield from scenario.model.problems()
    yield from model_problems(scenario)
    yield from server_data_problems(scenario)
    yield from scenario.algorithm.at(Moment()).problems(scenario)


def server_data_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields why the server cannot have these samples."""
    data, server_data = scenario.data, scenario.server_data
    if isinstance(server_data, NoServerData):
        return
    if not data.has_test_set:
        yield Problem("server_data", f"the {data.name} data has no samples for the server; leave it out")
    elif isinstance(server_data, OutOfDomain):
        for text in server_data.data.problems():
            yield Problem("server_data.data", text)
        if "images" not in data.holds:
            text = f"out_of_domain holds images, so clients must hold images too, got {data.name}; take in_domain"
            yield Problem("server_data", text)
        resizes = getattr(scenario.model, "image_size", None) is not None or type(scenario.model) not in MODELS
        if server_data.fit == "model" and not resizes:
            text = f"model needs a model that resizes images, got {scenario.model.name}; set model.image_size, or take "
            yield Problem("server_data.fit", f"{text}clients")
