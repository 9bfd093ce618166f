"""Runs the command as `python -m midstream.cli`."""

from midstream.cli.main import main

main()
