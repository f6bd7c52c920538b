"""Evidence of descriptions in words: the text network relates every glimpse to the description of the goal.

Each patch is encoded once. Glimpses that show nothing and empty descriptions give no evidence.

Legend: B episodes, R rows of a description, D numbers of a row, F numbers of an encoding, O offsets, S = 48.
"""

from typing import NamedTuple

import torch

from airloc.agents.cache import FeatureCache, content_keys
from airloc.vision.text import TextNetwork, is_blank


class TextEvidence(NamedTuple):
    """The descriptions of a batch, and the encodings of all patches so far."""

    description: torch.Tensor
    """Encoded descriptions, (B, F)."""
    blank: torch.Tensor
    """Which descriptions are empty, bool (B,)."""
    patches: FeatureCache
    """Encodings by patch, rows (F,)."""


def prepare_texts(network: TextNetwork, rows: torch.Tensor) -> TextEvidence:
    """Encode descriptions (B, R, D)."""
    return TextEvidence(network.encode_text(rows), is_blank(rows), FeatureCache())


def text_logits(
    network: TextNetwork, patch: torch.Tensor, evidence: TextEvidence, nothing: torch.Tensor
) -> tuple[torch.Tensor, TextEvidence]:
    """Return the logits (B, O) of the offsets from glimpses (B, S, S, 3) to the described goals, and the evidence.

    `nothing` tells which glimpses show nothing, bool (B,). Their logits are zero, as are those of empty descriptions.
    """
    encoded, patches = evidence.patches.lookup(content_keys(patch), lambda some: network.encode_patches(patch[some]))
    logits = network.relate(encoded, evidence.description)
    return logits.masked_fill((nothing | evidence.blank)[:, None], 0.0), evidence._replace(patches=patches)
