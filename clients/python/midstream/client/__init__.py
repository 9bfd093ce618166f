"""The client: a replica of each session, and the connection that keeps it equal to the server."""
