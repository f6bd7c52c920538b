"""What was computed for pictures, kept by their content, so that nothing is computed twice.

Episodes of a batch share areas, and an episode returns to cells: the same patch comes up again and again. It is known
by a 64-bit hash of its bytes, never by where it lies, which agents are not told.

The hash is multilinear: words of 32 bits times fixed random numbers of 64 bits, summed modulo 2^64. Two given pictures
that differ share a hash with a probability of at most 2^-33, and about 2^-64 where they differ in more than a word's
highest bit.

Legend: B keys asked for, n of them new, D bytes of a patch (a multiple of 4).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import torch

from airloc.seeding import stream

CHUNK = 128
"""New rows computed together by default: enough to keep the cores busy, few enough to stay in their caches."""
LIMIT = 768 * 2**20
"""Bytes after which a memo forgets everything and begins anew: what belief searchers keep of about 5,800 patches."""
MIXER = 0x9E3779B97F4A7C15 - 2**64  # odd: 2^64 over the golden ratio, as a signed number


def content_keys(patches: torch.Tensor) -> torch.Tensor:
    """Hash pictures (B, S, S, 3) uint8 by their content: (B,) int64."""
    words = patches.flatten(1).contiguous().view(torch.int32)
    return (words * _weights(words.shape[1], words.device)).sum(dim=1)


def pair_keys(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Keys of ordered pairs from the keys of their parts, each (B,)."""
    return first * MIXER + second


@dataclass(frozen=True, slots=True, eq=False)
class FeatureCache:
    """Rows by key. A value: looking something up gives a new memo and leaves this one as it is."""

    rows: Mapping[int, torch.Tensor] = field(default_factory=dict)

    def lookup(
        self, keys: torch.Tensor, compute: Callable[[torch.Tensor], torch.Tensor], *, chunk: int = CHUNK
    ) -> tuple[torch.Tensor, "FeatureCache"]:
        """Give the rows of keys, computing those that are new.

        Args:
            keys: What is asked for, (B,) int64.
            compute: Gives the rows (n, ...) of some places (n,) in `keys`, never two of the same key.
            chunk: Rows to compute together.

        Returns:
            The rows, (B, ...), and the memo that knows them all.
        """
        asked: list[int] = keys.tolist()
        cache = self if self._bytes <= LIMIT else FeatureCache()
        first_places: dict[int, int] = {}
        for place, key in enumerate(asked):
            if key not in cache.rows:
                first_places.setdefault(key, place)
        if first_places:
            places = torch.tensor(list(first_places.values()), device=keys.device)
            new = [row for some in torch.split(places, chunk) for row in compute(some).unbind()]
            cache = FeatureCache({**cache.rows, **dict(zip(first_places, new, strict=True))})
        return torch.stack([cache.rows[key] for key in asked]), cache

    def only(self, keys: torch.Tensor) -> "FeatureCache":
        """The memo that knows at most the rows of these keys, (B,)."""
        return FeatureCache({key: self.rows[key] for key in keys.tolist() if key in self.rows})

    @property
    def _bytes(self) -> int:
        return len(self.rows) * next(iter(self.rows.values())).nbytes if self.rows else 0


@lru_cache(maxsize=8)
def _weights(count: int, device: torch.device) -> torch.Tensor:
    """The numbers that words are multiplied with, (count,) int64, all odd."""
    numbers = stream(0, "memo").integers(-(2**63), 2**63, size=count) | 1
    return torch.from_numpy(numbers).to(device)
