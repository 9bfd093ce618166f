"""Tests any server of the protocol: cases by chapters of SPEC.md, and the small client that they drive."""

from midstream.conformance.servers.scene import Scene, Target
from midstream.conformance.servers.suite import SUITE

__all__ = ["SUITE", "Scene", "Target"]
