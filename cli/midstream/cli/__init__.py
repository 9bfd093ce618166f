"""The command `midstream`: serve, chat, tail, inspect, demo. Nothing imports this package."""
