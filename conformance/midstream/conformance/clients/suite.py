"""The suite that the cases for clients register themselves in."""

from midstream.conformance.clients.scene import ClientSuite

SUITE = ClientSuite()
"""All cases for clients, in the order of SPEC.md."""
