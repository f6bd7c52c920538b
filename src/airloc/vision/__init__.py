"""Networks that look: the segmentation unit, the patch embedder, positional encoding."""
