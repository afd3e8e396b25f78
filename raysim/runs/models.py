"""The files of models in a run's folder, and their digests."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from raysim.engine.simulation import Final
from results import NotARun, Run
from results.disk import CannotWrite, replacing, require_space
from results.location import local_copy


def save(folder: Path, final: Final, entries: Sequence[tuple[str, tuple[int, ...], int]]) -> None:
    """Writes model.safetensors and, if there are any, clients' own models and the best one beside it.

    All hold flat vectors `w` and `buffers`, with a row for each peer or client if there are several. Their metadata
    say where in `w` each parameter lies. entries: the name, shape and offset in `w` of each parameter.
    """
    parameters = json.dumps([list(entry) for entry in entries])
    order = "parameters of four dimensions (O, I, H, W) are stored as (O, H, W, I), except by the model `module`"
    metadata = {"parameters": parameters, "order": order}
    _save(final.model, folder / "model.safetensors", metadata)
    for name, vectors in (("clients", final.clients), ("best", final.best)):
        file = folder / f"{name}.safetensors"
        if vectors is not None:
            _save(vectors, file, metadata)
        else:
            file.unlink(missing_ok=True)  # that of an earlier end, before the run was extended


def _save(vectors: dict[str, np.ndarray], path: Path, metadata: dict[str, str]) -> None:
    require_space(path.parent, sum(vector.nbytes for vector in vectors.values()))
    with replacing(path) as hidden:
        hidden.touch()
        mode = hidden.stat().st_mode  # as for all files of the run; the library would keep others from reading it
        try:
            save_file(vectors, hidden, metadata=metadata)
            hidden.chmod(mode)
        except SafetensorError as error:  # the library raises it for errors of the operating system, too
            raise CannotWrite(path, str(error), True) from None


def read(run: Run, which: str) -> dict[str, Any]:
    """Returns the arrays in a file that a run leaves at its end. which: model, clients or best.

    Raises FileNotFoundError before the end, and NotARun if the file is damaged. A run that is being extended has the
    file of its earlier end.
    """
    left = run.info.get("digest" if run.status == "finished" else "left") or {}
    name = f"{which}.safetensors"
    if which not in left and run.status != "finished":
        text = f"must be finished to have {name}, got a run that is {run.standing}, and left none"
        raise FileNotFoundError(f"{run.folder}: {text}")
    if which == "best" and which not in left:
        raise FileNotFoundError(f"{run.folder}: must be a run with run.keep_best to have {name}, got one without")
    file = run.folder / name
    try:
        with local_copy(file) as copy:
            tensors = dict(load_file(copy))
    except FileNotFoundError:
        raise
    except (SafetensorError, OSError) as error:
        raise NotARun(f"{file}: must be a whole file of tensors, got {error}; run the scenario again") from error
    known, found = left.get(which), digest_of(tensors)
    if known not in (None, found):
        text = f"must be as the run wrote it, with the digest {known} that run.json names, got {found}"
        raise NotARun(f"{file}: {text}; copy it again from where it is whole, or run it again")
    return tensors


def digest(model: dict[str, np.ndarray], tables: str) -> dict[str, str]:
    """Returns SHA-256 digests of the final model, of the tables, and of both together (`run`).

    tables: the digest of the tables, which leaves out measured wall times. Runs with the same bits have equal digests.
    """
    parts = {"model": digest_of(model), "tables": tables}
    return {**parts, "run": hashlib.sha256("".join(parts.values()).encode()).hexdigest()}


def digests(final: Final) -> dict[str, str]:
    """Returns the SHA-256 digest of each file of models that a run leaves, by its name without the suffix."""
    files = {"model": final.model, "clients": final.clients, "best": final.best}
    return {name: digest_of(vectors) for name, vectors in files.items() if vectors is not None}


def digest_of(vectors: dict[str, np.ndarray]) -> str:
    """Returns the SHA-256 of vectors by name."""
    hashed = hashlib.sha256()
    for key in sorted(vectors):
        hashed.update(key.encode())
        hashed.update(np.ascontiguousarray(vectors[key]).data)
    return hashed.hexdigest()
