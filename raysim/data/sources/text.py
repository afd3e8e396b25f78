"""Text as tokens: a fixed vocabulary of characters, speeches by role, and windows to predict characters in."""

import re
from string import ascii_letters, digits

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

# Ids: 0 is padding, which no window has; 1 begins a speech and 2 ends it; 3 to 88 are the characters below; 89 is any
# other character. TensorFlow Federated and FedJAX use these 86 characters for Shakespeare, with ids in another order.
CHARACTERS = "\n\r !\"#$%&'()*,-./:;?@[]_" + digits + ascii_letters
BEGIN, END, UNKNOWN = 1, 2, 89
VOCABULARY = 90

_IDS = np.full(128 + 1, UNKNOWN, dtype=np.int16)  # by code point; the last entry is for all code points from 128 on
_IDS[[ord(character) for character in CHARACTERS]] = np.arange(3, UNKNOWN)


def encode(text: str) -> np.ndarray:
    """Returns the ids of a text, int16 (characters,)."""
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    ids: np.ndarray = _IDS[np.minimum(points, 128)]
    return ids


def roles(text: str) -> dict[str, np.ndarray]:
    """Returns the ids of what each role says, in order of appearance: BEGIN, a speech, END, BEGIN, and so on.

    A speech starts with a line SPEAKER:, at the start of the text or after an empty line. {} if there are no speeches.
    """
    _, *parts = re.split(r"(?:\A|(?<=\n\n))([^\n]+):\n", text)
    said: dict[str, list[np.ndarray]] = {}
    for speaker, speech in zip(parts[::2], parts[1::2], strict=True):
        said.setdefault(speaker, []).append(np.concatenate([[BEGIN], encode(speech.strip("\n")), [END]]))
    return {role: np.concatenate(speeches).astype(np.int16) for role, speeches in said.items()}


def windows(ids: np.ndarray, length: int, stride: int) -> np.ndarray:
    """Returns windows (n, length + 1): one starts every `stride` ids, and only whole ones count."""
    if len(ids) <= length:
        return ids[:0].reshape(0, length + 1)
    return sliding_window_view(ids, length + 1)[::stride]
