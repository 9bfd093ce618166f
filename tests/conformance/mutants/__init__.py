"""Servers that are broken on purpose, each in one rule of SPEC.md; the kit must catch every one."""

from __future__ import annotations

from tests.conformance.mutants.ends import ENDS
from tests.conformance.mutants.input import INPUT
from tests.conformance.mutants.mutant import Mutant
from tests.conformance.mutants.remote import REMOTE
from tests.conformance.mutants.stream import STREAM
from tests.conformance.mutants.wire import WIRE

MUTANTS: dict[str, Mutant] = {mutant.name: mutant for mutant in (*WIRE, *ENDS, *STREAM, *INPUT, *REMOTE)}
"""All of them, by name."""
