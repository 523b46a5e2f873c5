"""The ports on real things: DNS servers, the store, targets. Only :mod:`fencepost.assembly` names them."""
