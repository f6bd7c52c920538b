"""Procedural areas: deterministic from a seed, at any size and resolution."""

from airloc.areas.synthetic.disasters import DISASTERS
from airloc.areas.synthetic.source import REGIMES, Synthetic, generate

__all__ = ["DISASTERS", "REGIMES", "Synthetic", "generate"]
