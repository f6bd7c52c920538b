"""From logits to moves: the most probable one, or one drawn by its probability.

Legend: B episodes.
"""

import torch


def choose(logits: torch.Tensor, noise: torch.Tensor | None = None) -> torch.Tensor:
    """Choose one of eight moves for every episode, (B,).

    Args:
        logits: Of the moves, (B, 8); minus infinity for those that are forbidden.
        noise: Uniform numbers in [0, 1), (B, 8): the move is drawn with softmax probabilities, by adding Gumbel noise.
            Without it the most probable move is taken.
    """
    if noise is not None:
        # Noise of exactly zero would forbid a move; the smallest other number is 2^-24.
        logits = logits - (-noise.clamp(min=2.0**-25).log()).log()
    return logits.argmax(dim=1)
