"""Every decision, pure: no IO, clock, chance or event loop. What is decided, in the order a change takes:

    probe -> verdict -> quorum -> limits -> membership -> numbered plan -> fenced write -> DNS

`decider`, `effects` and `events` say how a decision is asked and answered; `fence`, `judge`, `zone` and `store` are the
protocol and the reference semantics of DNS and store; `promises` what must hold. `traffic` has the deciders.
"""
