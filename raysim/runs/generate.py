"""Lets the final language model of a run continue with a text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysim.data.named import shape_text
from raysim.data.sources.source import Source
from raysim.parts.errors import BadValue
from raysim.parts.rng import torch_seed
from raysim.runs.changes import require_no_links
from raysim.runs.result import Result
from raysim.scenario.load import read_back
from results.disk import writing

if TYPE_CHECKING:
    import torch
    from torch import Tensor


def generate(result: Result, prompt: str, tokens: int = 100, temperature: float = 0.0, seed: int = 0) -> str:
    """Returns a prompt and what the final model of a run makes of it.

    tokens: the most that are added; the end of a text ends it sooner. temperature: 0 takes the most probable token each
    time, 1 draws by their probabilities, more draws more evenly. seed: that of the draws. Raises BadValue if the data
    of the run are no text, or the model does not predict next tokens.
    """
    return next(generate_all(result, [prompt], tokens, temperature, seed))


def generate_all(
    result: Result, prompts: Sequence[str], tokens: int, temperature: float, seed: int, data: Source | None = None
) -> Iterator[str]:
    """Yields what `generate` returns for each prompt. data: those of the run; None: as run.json says."""
    import torch

    data = data or read_back(result.info["scenario"], str(result.folder / "run.json")).data
    known = data.vocabulary()
    if known is None:
        raise BadValue(f"must be text whose next tokens are predicted, got {data.name}; take a run on texts", "data")
    module, width = result.trained()[0], _width(result.info["input_shape"])
    for prompt in prompts:
        ids = [*known.prefix, *known.encode([prompt])[0].tolist()]
        if not ids:
            raise BadValue("must give a token or more, got none; give a longer one", "prompt")
        draw = torch.Generator().manual_seed(torch_seed(seed, "generate"))
        for _ in range(tokens):
            logits = _next(module, ids[-width:], width, known.padding)
            ids.append(_chosen(logits[: known.size], temperature, draw))
            if ids[-1] == known.end:
                break
        yield known.decode(ids)


def keep(folder: Path, text: str) -> None:
    """Adds a text to generated.txt in a run's folder.

    Raises CannotWrite if it cannot be written, and CannotGoOn where the folder holds links.
    """
    require_no_links(folder)
    with writing(folder), (folder / "generated.txt").open("a", encoding="utf-8") as file:
        file.write(f"{text}\n\n")


def _width(shape: Any) -> int:
    """Returns how many tokens a sample has."""
    tokens = shape.get("input_ids") if isinstance(shape, dict) else shape
    if not isinstance(tokens, list) or len(tokens) != 1:
        raise BadValue(f"must have inputs of tokens, got {shape_text(shape)}; take a run on texts", "data")
    return int(tokens[0])


def _next(module: Any, ids: list[int], width: int, padding: int) -> Tensor:
    """Returns the logits of the token after these, (classes,). What is padded comes after them, and is not seen."""
    import torch

    whole = torch.tensor([[*ids, *[padding] * (width - len(ids))]])
    with torch.no_grad():
        output: Tensor = module(whole)
    if output.ndim != 3:
        text = f"must return logits for each token, (n, {width}, tokens), got shape {tuple(output.shape)}"
        raise BadValue(f"{text}; take a causal_lm, say", "model")
    return output[0, len(ids) - 1]


def _chosen(logits: Tensor, temperature: float, draw: torch.Generator) -> int:
    import torch

    if not temperature:
        return int(logits.argmax())
    return int(torch.multinomial((logits / temperature).softmax(0), 1, generator=draw))
