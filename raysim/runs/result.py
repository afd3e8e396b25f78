"""The results of a run, for Python, and what an interruption leaves of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa
from safetensors import SafetensorError
from safetensors.numpy import load_file

from raysim.models.part import ModelPart
from raysim.parts.part import as_tuples
from raysim.parts.process import isolated
from raysim.runs.models import digest_of
from raysim.runs.origin import kept_code
from raysim.scenario.load import parse_model, read_back
from results import NotARun, Run, Runs, open_run, summary
from results.location import local_copy
from results.texts import cut

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from torch import nn

    from results.plot import Drawn


class Result:
    """The results in a run's folder: tables, models and run.json. Raises results.NotARun if it is no such folder.

    folder: the run's, or its URI.

    model: the scenario's model; by default as run.json says. It is needed for `module` and `state_dict` if the scenario
    was made with a torch module, because run.json keeps only a hash of that.
    """

    def __init__(self, folder: str | Path, model: ModelPart | None = None) -> None:
        self._model = model
        self.run: Run = open_run(folder)
        self.folder = self.run.folder

    def __repr__(self) -> str:
        return f"Result({str(self.folder)!r}), {self.run.standing}"

    def _repr_html_(self) -> str:
        """What a notebook shows: the summary, as `raysim show` prints it."""
        return summary(self.run)._repr_html_()

    @property
    def info(self) -> dict[str, Any]:
        """The content of run.json: the scenario with all defaults, status, totals, digest and more."""
        return self.run.info

    @property
    def digest(self) -> str:
        """A hash of the final model and all tables. It does not depend on the number of workers."""
        digest: str = self.info["digest"]["run"]
        return digest

    def table(self, name: str) -> pa.Table:
        """Returns a table by its name: steps, updates, evaluations, exchanges, coefficients, partition or tasks."""
        return self.run.table(name)

    def pandas(self, name: str) -> pd.DataFrame:
        """Returns a table by its name, as a pandas data frame."""
        return self.run.pandas(name)

    def plot(
        self, metric: str = "accuracy", x: str | None = None, axes: Axes | None = None, **how: Unpack[Drawn]
    ) -> Any:
        """Draws the learning curve of a metric, and returns matplotlib's axes. See `Runs.plot` for the arguments."""
        return Runs([self.run]).plot(metric, x, axes, **how)

    def vectors(self, *, best: bool = False) -> dict[str, Any]:
        """Returns the last model as float32 vectors `w` and `buffers`; after a run of peers, a row for each peer.

        It is the final one or, of a run that ended early, the last good one, of the step that run.json says under
        `left`. best: the best one instead, which `run.keep_best` keeps. Raises FileNotFoundError if there is no such
        model.
        """
        return self._final("best.safetensors" if best else "model.safetensors")

    def clients(self) -> dict[str, Any]:
        """Returns each client's own last model, if the scenario had `run.save_clients`.

        client: the clients' numbers, (n,) int64. w and buffers: float32 with a row for each client. Raises
        FileNotFoundError if clients' models were not saved.
        """
        return self._final("clients.safetensors")

    def state_dict(self, peer: int | None = None, *, best: bool = False, level: float | None = None) -> dict[str, Any]:
        """Returns the last model's tensors by name, in torch's standard layout, as `load_state_dict` takes them.

        peer, best, level: see `module`.
        """
        named = self.module(peer, best=best, level=level).state_dict()
        return {name: _in_standard_layout(value) for name, value in named.items()}

    def module(self, peer: int | None = None, *, best: bool = False, level: float | None = None) -> nn.Module:
        """Returns the last global model, or in a run of peers the model of one peer, in eval mode.

        peer: the peer's number, by default 0. best: see `vectors`. level: returns the narrower model of this width that
        the global one holds, as a client of a level of `capacity` would receive it. Raises ValueError if there is no
        such peer or level.
        """
        saved = self._of_peer(peer, best=best)
        return _evaluating(self._filled(saved) if level is None else self._slice(saved, level, best))

    def client_module(self, client: int) -> nn.Module:
        """Returns a client's own last model in eval mode, if the scenario had `run.save_clients`.

        Raises ValueError if that client has no saved model.
        """
        saved = self.clients()
        clients = saved.pop("client").tolist()
        if client not in clients:
            raise ValueError(f"client: must be one with a saved model, got {client}; they are {cut(str(clients), 200)}")
        row = clients.index(client)
        return _evaluating(self._filled({key: rows[row] for key, rows in saved.items()}))

    def _final(self, name: str) -> dict[str, Any]:
        """Returns the arrays in a file that a run leaves at its end. Raises FileNotFoundError before the end.

        A run that is being extended has the file of its earlier end.
        """
        left = self.info.get("digest" if self.run.status == "finished" else "left") or {}
        which = name.removesuffix(".safetensors")
        if which not in left and self.run.status != "finished":
            raise FileNotFoundError(
                f"{self.folder}: must be finished to have {name}, got a run that is {self.run.standing}, and left none"
            )
        if which == "best" and which not in left:
            raise FileNotFoundError(f"{self.folder}: must be a run with run.keep_best to have {name}, got one without")
        file = self.folder / name
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

    def _of_peer(self, peer: int | None, *, best: bool) -> dict[str, Any]:
        vectors = self.vectors(best=best)
        if vectors["w"].ndim == 1:
            if peer is not None:
                raise ValueError(f"peer: must not be given, because the run had a server, got {peer}; leave it out")
            return vectors
        if not 0 <= (row := peer or 0) < (peers := len(vectors["w"])):
            raise ValueError(f"peer: must be from 0 to {peers - 1}, got {peer}; take one of the run's peers")
        return {key: rows[row] for key, rows in vectors.items()}

    def _slice(self, saved: dict[str, Any], level: float, best: bool) -> nn.Module:
        """Returns the narrower module that the global model holds, in training mode."""
        from raysim.models.build import initialise
        from raysim.models.layout import Layout
        from raysim.models.slices import Slices

        scenario = read_back(self.info["scenario"], str(self.folder / "run.json"))
        if level not in scenario.levels:
            known = ", ".join(f"{one:g}" for one in scenario.levels) or "none, for all clients train the server's model"
            raise ValueError(f"level: must be one that clients have, got {level!r}; they are {known}")
        if level == 1:
            return self._filled(saved)
        of = self.info["best"] if best else self.info.get("left") or self.info["totals"]
        version = int(of.get("step", of.get("steps", 0)))
        with kept_code(self.folder, self.info), isolated(torch=True):
            model = self._model or scenario.model
            given = (as_tuples(self.info["input_shape"]), self.info["classes"], self.info["seed"])
            pair = [initialise(model, *given, width) for width in (1.0, level)]
            layouts = [Layout(one, channels_last=model.channels_last) for one in pair]
            slices = Slices(pair[0], layouts[0], pair[1], layouts[1])
            index = slices.of(scenario.central.first_unit(version))
        buffers = saved.get(f"buffers {level:g}", saved["buffers"][index.buffers.numpy()])
        return self._filled({"w": saved["w"][index.w.numpy()], "buffers": buffers}, level)

    def _filled(self, saved: dict[str, Any], width: float = 1.0) -> nn.Module:
        """Returns the scenario's module of a width in training mode, filled with flat vectors."""
        import torch

        from raysim.models.build import initialise
        from raysim.models.layout import Layout

        file, cure = self.folder / "run.json", "copy it again from where it is whole, or run the scenario again"
        if lacking := [key for key in ("input_shape", "classes", "seed") if self.info.get(key) is None]:
            raise NotARun(f"{file}: must have {' and '.join(lacking)}, with which the model is built, got none; {cure}")
        with kept_code(self.folder, self.info), isolated(torch=True):
            model = self._model or parse_model(self.info["scenario"]["model"], str(file))
            shape = as_tuples(self.info["input_shape"])
            module = initialise(model, shape, self.info["classes"], self.info["seed"], width)
            w, buffers = torch.tensor(saved["w"]), torch.tensor(saved["buffers"])
            layout = Layout(module, model.personal, channels_last=model.channels_last, norm=model.norm)
            if layout.size != len(w):
                must = f"model, input_shape and classes must give a model of {len(w)} parameters, as the run left it"
                raise NotARun(f"{file}: {must}, got one of {layout.size}; {cure}")
            for view, parameter in zip(layout.views(w), layout.select(module), strict=True):
                parameter.data = view.clone()  # in memory of its own, as files of tensors need it
            layout.load_buffers(module, buffers)
        return module


def _in_standard_layout(value: Any) -> Any:
    """Returns a copy of a dense tensor in memory of its own, and other values as they are."""
    import torch

    dense = isinstance(value, torch.Tensor) and value.layout == torch.strided
    return value.clone(memory_format=torch.contiguous_format) if dense else value


def _evaluating(module: nn.Module) -> nn.Module:
    module.eval()  # which may return nothing, where it is the module's own
    return module


class Interrupted(KeyboardInterrupt):
    """A run was interrupted, as by Ctrl-C. result: what there is of it; `raysim.resume` goes on with it."""

    def __init__(self, result: Result) -> None:
        super().__init__(f"{result.folder} was interrupted")
        self.result = result

    def __reduce__(self) -> tuple[type[Interrupted], tuple[Result]]:
        return Interrupted, (self.result,)
