"""The files of models in a run's folder, and their digests."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import save_file

from raysim.engine.simulation import Final
from results.disk import CannotWrite, replacing, require_space


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
