"""The HDF5 files of TensorFlow Federated: samples by client, under `examples`."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from raysim.data.sources.reading import reading
from raysim.data.sources.subset import is_chosen
from raysim.parts.errors import BadValue
from results.location import local_copy, location
from results.texts import extra


def read_clients(file: str | Path, share: float = 1.0) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """Yields each client's name and its arrays by name, in the order of the names; texts are arrays of str.

    share: of the clients, which are read; see `is_chosen`.

    Raises ValueError if h5py is not installed, or if the file is none of TensorFlow Federated's.
    """
    try:
        import h5py
    except ImportError as error:
        text = f"the package `h5py` must be there to read HDF5, and is not; {extra('hdf5')}"
        raise BadValue(text, "path") from error
    what = "a whole HDF5 file of TensorFlow Federated, with `examples`"
    with reading(file, what), local_copy(location(file)) as copy, h5py.File(copy) as content:
        clients = content["examples"]
        for client in sorted(name for name in clients if is_chosen(name, share)):
            arrays = {name: held[()] for name, held in clients[client].items()}
            yield client, {name: _texts(array) if array.dtype.kind in "OS" else array for name, array in arrays.items()}


def _texts(array: np.ndarray) -> np.ndarray:
    return np.array([one.decode(errors="replace") for one in array.ravel().tolist()], dtype=object).reshape(array.shape)
