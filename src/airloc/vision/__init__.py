"""Neural networks: AiRLoc's segmentation unit and patch embedder, and the relation network of `belief`."""

from airloc.vision.embedder import PatchEmbedder, PatchEncoder, Segmenter
from airloc.vision.position import encode_position
from airloc.vision.relation import RelationNetwork

__all__ = ["PatchEmbedder", "PatchEncoder", "RelationNetwork", "Segmenter", "encode_position"]
