"""Incident records: what happened, in one form, whether it was published, replayed or read off a region's history.

:mod:`.record` is the form (``fencepost.incident/1``, its JSON Schema made from it); :mod:`.reading` finds records and
says what is wrong with one; :mod:`.from_replay` and :mod:`.from_journal` make them; :mod:`.related` finds those that
have a cause or a component in common; :mod:`.told` says one in words. Nothing here decides anything: records are for
people, and for programs that compare incidents.
"""
