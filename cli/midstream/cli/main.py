"""Where the command `midstream` begins."""

from __future__ import annotations

import sys

EXTRA = ("prompt_toolkit", "rich", "typer")
"""What the command needs beyond what the package needs: the extra `cli`."""


def main() -> None:
    """Run the command, or say how to install what it needs."""
    try:
        from midstream.cli.commands import app  # noqa: PLC0415 - it may be missing what the extra brings

        app(prog_name="midstream")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in EXTRA:
            raise
        sys.exit(f"midstream: the command needs {error.name}. Install it with: pip install 'midstream[cli]'")
