"""The results of a run, for Python."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import pyarrow as pa

from raysim.models.part import ModelPart
from raysim.parts.part import as_tuples
from raysim.parts.process import isolated
from raysim.runs.origin import kept_code
from raysim.runs.record import read
from raysim.scenario.load import parse_block, read_back
from raysim.terms import ModelKey, suffixed
from results import NotARun, Run, Runs, open_run, summary
from results.location import is_local, location
from results.reader import newest
from results.texts import cut

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from torch import nn

    from results.plot import Drawn


class Which(TypedDict, total=False):
    """Which of the models in a run's folder is meant: see `Result.module`."""

    client: int | None
    best: bool
    level: float | None
    group: str | None


class Result:
    """The results in a run's folder: tables, models and run.json. Raises results.NotARun if it is no such folder.

    folder: the run's, or its URI; or a name, such as quickstart or runs/quickstart, for the newest run of that name.

    model: the scenario's model; by default as run.json says. It is needed for `module` and `state_dict` if the scenario
    was made with a torch module, because run.json keeps only a hash of that.
    """

    def __init__(self, folder: str | Path, model: ModelPart | None = None) -> None:
        self._model = model
        place = location(folder)
        self.run: Run = open_run(newest(place) if is_local(place) else place)
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
        return read(self.run, "best" if best else "model")

    def clients(self) -> dict[str, Any]:
        """Returns each client's own last model, if the scenario had `run.save_clients`.

        client: the clients' numbers, (n,) int64. w and buffers: float32 with a row for each client. Raises
        FileNotFoundError if clients' models were not saved.
        """
        return read(self.run, "clients")

    def state_dict(self, peer: int | None = None, *, best: bool = False, level: float | None = None) -> dict[str, Any]:
        """Returns the last model's tensors by name, in torch's standard layout, as `load_state_dict` takes them.

        peer, best, level: see `module`.
        """
        named = self.trained(peer=peer, best=best, level=level)[0].state_dict()
        return {name: _in_standard_layout(value) for name, value in named.items()}

    def module(self, peer: int | None = None, *, raw: bool = False, **which: Unpack[Which]) -> nn.Module:
        """Returns the last global model, or in a run of peers the model of one peer, in eval mode.

        It has the forward pass of the library that it is from: a model of transformers returns that library's outputs,
        and can `generate`; one with `model.lora` is a `PeftModel`, with `merge_and_unload`.

        peer: the peer's number, by default 0. raw: whether it takes inputs before they are scaled, as the data had
        them, but with the axes that the model takes, such as (n, channels, height, width) for images. which: `client`,
        the number of a client whose own last model is returned, which `run.save_clients` saves. `best`: see `vectors`.
        `level`: returns the narrower or shallower model that the global one holds, as a client of this level of
        `capacity` would receive it. `group`: returns the server's model for a group of `clients`, whose architecture
        may be another. Raises ValueError if there is no such peer, client, level or group.
        """
        from raysim.models.library import of_library
        from raysim.runs.use import raw as unscaled

        module = of_library(*self.trained(peer=peer, **which))
        return unscaled(module, self.run) if raw else module

    def predict(self, inputs: Any, peer: int | None = None, *, outputs: bool = False, **which: Unpack[Which]) -> Any:
        """Returns what the last model predicts for new inputs, as a numpy array with a row for each.

        What was done to inputs in training is done to these: features are put in order, kinds become numbers, texts
        become tokens, and all is scaled.

        inputs: in the form in which the data had them: a data frame with the columns of the features, an array, a dict
        of arrays, or a list of texts. peer, which: see `module`. outputs: whether the model's outputs, such as
        logits, are returned. By default: names or numbers of classes, 0 or 1 for each of several labels, or targets.
        Raises ValueError for inputs that are not as those that trained the model.
        """
        from raysim.runs.use import labels_of, meaning_of, outputs_of

        found = outputs_of(self.run, self.trained(peer=peer, **which)[0], inputs)
        return found if outputs else labels_of(found, meaning_of(self.run).labels)

    def export(
        self, to: str, folder: str | Path | None = None, peer: int | None = None, **which: Unpack[Which]
    ) -> Path:
        """Writes the last model for other programs into a folder, and returns the folder.

        inputs.json there says what inputs, outputs and labels are, and how inputs were scaled.

        to: hf, as `from_pretrained` of transformers loads it, adapters merged, with the tokenizer. peft: adapters and
        their base. safetensors: a state dict with the names of the model's library. onnx, torch-export: a program that
        takes inputs before they are scaled, as `module(raw=True)` does. folder: by default one of that name in the
        run's folder. peer, which: see `module`. Raises ValueError where a model cannot be written so.
        """
        from raysim.runs.use import export

        place = self.folder / to if folder is None else Path(folder)
        return export(self.run, *self.trained(peer=peer, **which), to, place)

    def trained(
        self,
        *,
        peer: int | None = None,
        client: int | None = None,
        best: bool = False,
        level: float | None = None,
        group: str | None = None,
    ) -> tuple[nn.Module, ModelPart]:
        """Returns a model as raysim trains it, which returns one tensor, in eval mode; and the scenario's model."""
        if client is not None:
            return self._of_client(client)
        vectors = self._of_peer(peer, best=best)
        if group is not None:
            return self._of_group(vectors, group)
        return self._filled(vectors) if level is None else self._slice(vectors, level, best)

    def _of_client(self, client: int) -> tuple[nn.Module, ModelPart]:
        saved, known = self.clients(), list[int]()
        for name in [name for name in saved if name.partition(" of ")[0] == "client"]:
            clients, key = saved[name].tolist(), name.partition(" of ")[2] or 1.0
            if client in clients:
                row = clients.index(client)
                return self._filled({one: saved[suffixed(one, key)][row] for one in ("w", "buffers")}, key=key)
            known += clients
        text = f"client: must be one with a saved model, got {client}; they are {cut(str(sorted(known)), 200)}"
        raise ValueError(text)

    def _of_group(self, saved: dict[str, Any], group: str) -> tuple[nn.Module, ModelPart]:
        """Returns the server's model for a group."""
        scenario = read_back(self.info["scenario"], str(self.folder / "run.json"))
        names = [one.name for one in scenario.clients]
        if group not in names:
            raise ValueError(f"group: must be in `clients`, whose are {', '.join(names) or 'none'}, got {group!r}")
        model = scenario.clients[names.index(group)].model
        key = next((key for key, other in scenario.models.items() if other == model), 1.0)
        if suffixed("w", key) not in saved:
            text = f"must be one for which the server of {scenario.algorithm.name} has a model, got {group!r}"
            raise ValueError(f"group: {text}; set run.save_clients, and give the number of a client")
        return self._filled({one: saved[suffixed(one, key)] for one in ("w", "buffers")}, key=key)

    def _of_peer(self, peer: int | None, *, best: bool) -> dict[str, Any]:
        vectors = self.vectors(best=best)
        if vectors["w"].ndim == 1:
            if peer is not None:
                raise ValueError(f"peer: must not be given, because the run had a server, got {peer}; leave it out")
            return vectors
        if not 0 <= (row := peer or 0) < (peers := len(vectors["w"])):
            raise ValueError(f"peer: must be from 0 to {peers - 1}, got {peer}; take one of the run's peers")
        return {key: rows[row] for key, rows in vectors.items()}

    def _slice(self, saved: dict[str, Any], level: float, best: bool) -> tuple[nn.Module, ModelPart]:
        """Returns the module of a level that the global model holds, and the scenario's model."""
        from raysim.models.build import initialise
        from raysim.models.layout import Layout
        from raysim.models.slices import Slices

        scenario = read_back(self.info["scenario"], str(self.folder / "run.json"))
        if level not in scenario.levels:
            known = ", ".join(f"{one:g}" for one in scenario.levels) or "none; all clients train the server's model"
            raise ValueError(f"level: must be one that clients have, got {level!r}; they are {known}")
        central = scenario.central
        if level == 1 and central.depth(1.0) == central.depth(None):
            return self._filled(saved)
        of = self.info["best"] if best else self.info.get("left") or self.info["totals"]
        version = int(of.get("step", of.get("steps", 0)))
        with kept_code(self.folder, self.info), isolated(torch=True):
            model = self._model or scenario.model
            given = (as_tuples(self.info["input_shape"]), self.info["classes"], self.info["seed"])
            width, depth = (1.0, central.depth(level)) if central.depth(None) else (level, None)
            pair = [initialise(model, *given, *size) for size in ((1.0, central.depth(None)), (width, depth))]
            layouts = [Layout(one, channels_last=model.channels_last) for one in pair]
            slices = Slices(pair[0], layouts[0], pair[1], layouts[1])
            index = slices.of(central.first_unit(version))
        buffers = saved.get(f"buffers {level:g}", saved["buffers"][index.buffers.numpy()])
        return self._filled({"w": saved["w"][index.w.numpy()], "buffers": buffers}, level)

    def _filled(
        self, saved: dict[str, Any], level: float | None = None, key: ModelKey = 1.0
    ) -> tuple[nn.Module, ModelPart]:
        """Returns a module in eval mode, filled with flat vectors, and its model. level: that of a client; None: it is
        the server's. key: of its architecture."""
        import torch

        from raysim.models.build import initialise
        from raysim.models.layout import Layout

        file, cure = self.folder / "run.json", "copy it again from where it is whole, or run the scenario again"
        if lacking := [key for key in ("input_shape", "classes", "seed") if self.info.get(key) is None]:
            raise NotARun(f"{file}: must have {' and '.join(lacking)}, with which the model is built, got none; {cure}")
        with kept_code(self.folder, self.info), isolated(torch=True):
            groups = {one["name"]: one["model"] for one in self.info["scenario"]["clients"]}
            own = self._model if key == 1.0 else None
            model = own or parse_block(
                "model", groups[key] if key in groups else self.info["scenario"]["model"], str(file)
            )
            shape = as_tuples(self.info["input_shape"])
            block = self.info["scenario"]["algorithm"]
            depth = parse_block("algorithm", block, str(file)).depth(level) if "exits" in block else None
            size = (1.0, depth) if depth else (level or 1.0, None)
            module = initialise(model, shape, self.info["classes"], self.info["seed"], *size)
            w, buffers = torch.tensor(saved["w"]), torch.tensor(saved["buffers"])
            layout = Layout(module, model.personal, channels_last=model.channels_last, norm=model.norm)
            if layout.size != len(w):
                must = f"model, input_shape and classes must give a model of {len(w)} parameters, as the run left it"
                raise NotARun(f"{file}: {must}, got one of {layout.size}; {cure}")
            for view, parameter in zip(layout.views(w), layout.select(module), strict=True):
                parameter.data = view.clone()  # in memory of its own, as files of tensors need it
            layout.load_buffers(module, buffers)
        module.eval()  # which may return nothing, where it is the module's own
        return module, model


def _in_standard_layout(value: Any) -> Any:
    """Returns a copy of a dense tensor in memory of its own, and other values as they are."""
    import torch

    dense = isinstance(value, torch.Tensor) and value.layout == torch.strided
    return value.clone(memory_format=torch.contiguous_format) if dense else value


class Interrupted(KeyboardInterrupt):
    """A run was interrupted, as by Ctrl-C. result: what there is of it; `raysim.resume` continues with it."""

    def __init__(self, result: Result) -> None:
        super().__init__(f"{result.folder} was interrupted")
        self.result = result

    def __reduce__(self) -> tuple[type[Interrupted], tuple[Result]]:
        return Interrupted, (self.result,)
