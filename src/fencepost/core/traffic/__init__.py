"""Who is served, and how that gets into DNS: the deciders, with the rules each is made of.

    health (a checker)       hysteresis, verdict
    load_balancer            decision, by roster, observed, quorum, operator_word, readiness, alarms, limits, slow_start
    dns_planner              desired
    dns_enactor, janitor

`membership` is the row between the two halves, and `allowance` tells people what the limits leave of it;
`bounded_removal` judges the first half from outside.
"""
