"""What a replay looks like: on a terminal, as a JSON document, as one page, as one picture. All made from outcomes.

    Outcome -> phases, charts, beliefs -> terminal_text | document | page | picture

Page and picture are drawn from one model (:mod:`.drawing`) by two pens (:mod:`.svg`, :mod:`.pixels`). Published values,
estimates and calibrated ones are told apart in each of them, and what is equal by script from what emerged.
"""
