"""A region as one value, and all its moves: what the explorer walks. The references stand in for real ports."""
