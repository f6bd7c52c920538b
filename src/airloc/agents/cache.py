"""A cache of features by patch content, so that no patch and no pair of patches is computed twice.

Episodes of a batch share areas, and an episode returns to cells: the same patch occurs again and again. A patch is
identified by a 64-bit hash of its bytes, never by its place, which agents do not know.

The hash is multilinear: 32-bit words times fixed random 64-bit numbers, summed modulo 2^64. Two different patches share
a hash with a probability of at most 2^-33, and of about 2^-64 if they differ in more than the highest bit of one word.

Legend: B requested keys, n of them new, S side of a patch.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import torch

from airloc.seeding import stream

CHUNK = 128
"""Default number of new rows to compute at once: enough to use all cores, few enough to stay in their caches."""
LIMIT = 768 * 2**20
"""Size in bytes above which a cache is cleared: the encodings of about 5,800 patches for `belief`."""
_MIXER = 0x9E3779B97F4A7C15 - 2**64  # odd: 2^64 over the golden ratio, as a signed number


def content_keys(patches: torch.Tensor) -> torch.Tensor:
    """Hash patches (B, S, S, 3) uint8 by their content: (B,) int64."""
    words = patches.flatten(1).contiguous().view(torch.int32)
    return (words * _hash_weights(words.shape[1], words.device)).sum(dim=1)


def pair_keys(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Return keys of ordered pairs from the keys of their parts, each (B,)."""
    return first * _MIXER + second


@dataclass(frozen=True, slots=True, eq=False)
class FeatureCache:
    """Rows of features by key. The cache is a value: `lookup` returns a new cache and does not change this one."""

    rows: Mapping[int, torch.Tensor] = field(default_factory=dict)

    def lookup(
        self, keys: torch.Tensor, compute: Callable[[torch.Tensor], torch.Tensor], *, chunk: int = CHUNK
    ) -> tuple[torch.Tensor, "FeatureCache"]:
        """Return the rows of keys and compute those that are missing.

        Args:
            keys: Requested keys, (B,) int64.
            compute: Returns the rows (n, ...) for some indices (n,) into `keys`, no two of them of the same key.
            chunk: Number of rows to compute at once.

        Returns:
            The rows, (B, ...), and the cache that contains them.
        """
        requested: list[int] = keys.tolist()
        cache = self if self._bytes <= LIMIT else FeatureCache()
        first_index: dict[int, int] = {}
        for index, key in enumerate(requested):
            if key not in cache.rows:
                first_index.setdefault(key, index)
        if first_index:
            missing = torch.tensor(list(first_index.values()), device=keys.device)
            new = [row for some in torch.split(missing, chunk) for row in compute(some).unbind()]
            cache = FeatureCache({**cache.rows, **dict(zip(first_index, new, strict=True))})
        return torch.stack([cache.rows[key] for key in requested]), cache

    def only(self, keys: torch.Tensor) -> "FeatureCache":
        """Return a cache that contains at most the rows of these keys, (B,)."""
        return FeatureCache({key: self.rows[key] for key in keys.tolist() if key in self.rows})

    @property
    def _bytes(self) -> int:
        return len(self.rows) * next(iter(self.rows.values())).nbytes if self.rows else 0


@lru_cache(maxsize=8)
def _hash_weights(count: int, device: torch.device) -> torch.Tensor:
    """Return the factors of the words of a patch, (count,) int64, all odd."""
    numbers = stream(0, "memo").integers(-(2**63), 2**63, size=count) | 1
    return torch.from_numpy(numbers).to(device)
