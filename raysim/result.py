"""What a run left, for Python."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from results import Run, open_run

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from torch import Tensor, nn

    from raysim.models.layout import Layout


class Result:
    """A run's folder. Raises results.NotARun where it is none."""

    def __init__(self, folder: str | Path) -> None:
        self.run: Run = open_run(Path(folder))
        self.folder = Path(folder)

    @property
    def info(self) -> dict[str, Any]:
        """run.json: resolved scenario, status, totals, digest."""
        return self.run.info

    @property
    def digest(self) -> str:
        """Of the final model and all tables: the same for any number of workers."""
        digest: str = self.info["digest"]["run"]
        return digest

    def table(self, name: str) -> pa.Table:
        """One of steps, updates, evaluations, exchanges, coefficients, partition."""
        return self.run.table(name)

    def pandas(self, name: str) -> pd.DataFrame:
        """The same as a data frame."""
        return self.run.pandas(name)

    def vectors(self) -> dict[str, Any]:
        """The final flat vectors, float32 arrays: `w` and `buffers`; of peers, a row each."""
        from safetensors.numpy import load_file

        return dict(load_file(self.folder / "model.safetensors"))

    def clients(self) -> dict[str, Any]:
        """Clients' own last models, of a run with `run.save_clients`: `client`, their numbers int64 (n,), and `w` and
        `buffers`, float32, a row each."""
        from safetensors.numpy import load_file

        return dict(load_file(self.folder / "clients.safetensors"))

    def state_dict(self, peer: int = 0) -> dict[str, Any]:
        """The final global model's tensors by name, as torch's `load_state_dict` takes them, without frozen ones.

        peer: of peers, whose.
        """
        _, layout, vectors = self._bound(self._of_peer(peer))
        return layout.state_dict(vectors["w"], vectors["buffers"])

    def module(self, peer: int = 0) -> nn.Module:
        """The final global model, or that of a peer, in eval mode."""
        return self._bound(self._of_peer(peer))[0].eval()

    def client_module(self, client: int) -> nn.Module:
        """A client's own last model, of a run with `run.save_clients`, in eval mode. ValueError for one without."""
        saved = self.clients()
        row = saved.pop("client").tolist().index(client)
        return self._bound({key: rows[row] for key, rows in saved.items()})[0].eval()

    def _of_peer(self, peer: int) -> dict[str, Any]:
        return {key: value if value.ndim == 1 else value[peer] for key, value in self.vectors().items()}

    def _bound(self, saved: dict[str, Any]) -> tuple[nn.Module, Layout, dict[str, Tensor]]:
        """A module with these flat vectors."""
        import torch

        from raysim.models.build import initialise
        from raysim.models.layout import Layout
        from raysim.scenario.load import parse_scenario

        scenario = parse_scenario(self.info["scenario"], str(self.folder / "run.json"))
        module = initialise(scenario.model, tuple(self.info["input_shape"]), self.info["classes"], scenario.seed)
        vectors = {key: torch.tensor(value) for key, value in saved.items()}
        layout = Layout(module, scenario.model.personal)
        layout.bind(module, vectors["w"])
        layout.load_buffers(module, vectors["buffers"])
        return module, layout, vectors
