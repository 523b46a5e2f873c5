"""October 2025 in seconds: a whole region in virtual time, and what each guard would have bought.

    scenario file -> Scenario -> run -> Outcome -> terminal, JSON, page, picture, incident record

Mechanisms are what the world does (:mod:`.paths`, :mod:`.workers`, :mod:`.network`, :mod:`.balancers`): callers lose
their way to the store, work takes workers, queues drain at a rate. Policies are who decides (:mod:`.as_it_was` and
production's own deciders), and drop into the same mechanisms. Nothing says "stuck" anywhere.

The world moves in steps of twelve seconds (:mod:`.run`); where the lease manager has contention it moves by seconds
within one. Time is whole seconds since the scenario begins; chance comes from the seed alone.
"""
