"""A seeded walk of a whole DNS region in virtual time, on the very deciders that ship.

One heap of (time, move); the moves are those of :mod:`fencepost.world`, which the explorer walks too. What the
simulator adds is time: calls take a while, timers fire when due, clocks disagree, things last. What goes wrong is drawn
beforehand as a list (:mod:`fencepost.simulator.schedule`), apart from how long each call takes, so that a failing walk
can be shrunk to the few events that it needs.
"""
