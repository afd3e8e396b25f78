"""Where a key stands that was written in another place, or that other programs call by another name."""

from __future__ import annotations

from collections.abc import Iterator

from raysim.parts.part import Part, parts_of

# Names in other simulators and in papers, without underscores, and the keys here.
_OTHERS = {
    **dict.fromkeys(("learningrate", "stepsize", "locallr", "clientlr"), "local.lr"),
    **dict.fromkeys(("serverlearningrate", "globallr"), "algorithm.server_lr"),
    **dict.fromkeys(("batchsize", "localbatchsize"), "local.batch_size"),
    **dict.fromkeys(("localepochs", "numepochs", "clientepochs"), "local.epochs"),
    **dict.fromkeys(("localsteps", "numsteps"), "local.steps"),
    "momentum": "local.optimizer.momentum",
    **dict.fromkeys(("optim", "localoptimizer"), "local.optimizer"),
    **dict.fromkeys(("numclients", "nclients", "totalclients", "numberofclients"), "data.clients"),
    **dict.fromkeys(("clientsperround", "perround", "cohortsize"), "world.dispatch.per_round"),
    **dict.fromkeys(("numrounds", "nrounds", "globalrounds", "commrounds"), "run.rounds"),
    **dict.fromkeys(("dataset", "datasetname"), "data.name"),
    **dict.fromkeys(("modelname", "arch", "architecture"), "model.name"),
    **dict.fromkeys(("randomseed", "globalseed"), "seed"),
}
_DEEP = 4  # words of a path that is looked for, at most


def elsewhere(key: str, at: str, root: type[Part]) -> list[str]:
    """Returns the paths that are probably meant by an unknown key: the known name of another one, or the shortest paths
    of the same last word. None where another part has the key just there. at: the path of the block that has it."""
    here = f"{at}.{key}" if at else key
    if path := _OTHERS.get(key.lower().replace("_", "").replace("-", "")):
        return [path.removeprefix(f"{at}.")] if path != here else []
    every = [path for path in dict.fromkeys(_paths(root, "")) if path.rpartition(".")[2] == key]
    found = [path for path in every if at and path.startswith(f"{at}.")] or every  # rather within the block
    if here in every:
        return []
    words = min((path.count(".") for path in found), default=0)
    return [path for path in found if path.count(".") == words]


def _paths(owner: type[Part], above: str) -> Iterator[str]:
    """Yields the paths of all keys of a block, and of the blocks and parts below it."""
    for key, field in owner.model_fields.items():
        path = above + key
        yield path
        if path.count(".") < _DEEP - 1:
            for part in parts_of(field.rebuild_annotation()):
                yield from _paths(part, f"{path}.")
