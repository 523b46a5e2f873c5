"""A fleet in virtual time: hosts, their managers over several shards, the store, and what goes wrong between them.

Hosts, lease managers, admission and placement are the very deciders that ship, and what is written into rows are their
own functions. What is here is what the roles do around them, in the same order: what arrived is told before time is.
"""
