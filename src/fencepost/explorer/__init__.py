"""Every interleaving of a region's moves, to a bound, in search of a broken promise: ``fencepost explore``."""
