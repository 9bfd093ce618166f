"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Url = Annotated[str, typer.Argument(metavar="URL", help="Where the server is, such as ws://127.0.0.1:8787.")]
TokenFile = Annotated[
    Path | None,
    typer.Option(help="A file with the token to connect with, read anew when needed. [MIDSTREAM_TOKEN]"),
]
SecretFile = Annotated[
    Path | None,
    typer.Option(help="A file with the secret that signs tokens (HS256). [MIDSTREAM_TOKEN_SECRET]"),
]
SessionId = Annotated[str, typer.Argument(metavar="SESSION", help="The session's id.")]
