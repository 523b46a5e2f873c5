"""``fencepost fleet …``: hosts, instances, and what a person says of them.

Looking asks the API, and the store where that doesn't answer. Launches go to the API, which alone knows how many may
come in; everything else a person says stands in the store, so it can be said with the API down.
"""
