"""Clients that are broken on purpose, each in one rule; the conformance kit must catch every one.

`python -m tests.conformance.client_mutants` prints which case caught which; with the name of one, that client
serves the kit on its standard input.
"""
