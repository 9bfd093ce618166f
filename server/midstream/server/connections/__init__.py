"""Connections: frames between WebSockets and sessions (SPEC 3, 6, 11)."""
