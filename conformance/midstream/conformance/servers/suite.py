"""The cases for servers: importing a module of `cases` brings what stands in it."""

from midstream.conformance.case import Suite
from midstream.conformance.servers.scene import Scene

SUITE: Suite[Scene] = Suite()
