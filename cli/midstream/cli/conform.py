"""The commands `midstream conform ...`: tests anybody's implementation of the protocol."""

from __future__ import annotations

import asyncio
import secrets
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

conforming = typer.Typer(
    no_args_is_help=True, help="Test an implementation of the protocol by the rules of SPEC.md."
)

Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only", metavar="RULE", help="An id, glob, section or guarantee of cases; may be repeated."
    ),
]
Reports = Annotated[
    list[str] | None,
    typer.Option(
        "--report", metavar="FORM:PATH", help="Write a report: table, json, junit or html, and where to."
    ),
]
Seed = Annotated[
    int | None, typer.Option(help="Of the run's chances; a run says its own.", show_default=False)
]
Jobs = Annotated[int, typer.Option(min=1, help="How many cases run at a time.")]


class Encoding(StrEnum):
    """What goes over the wire (SPEC 3.1)."""

    MSGPACK = "msgpack"
    JSON = "json"


class AgentChoice(StrEnum):
    """Who runs the turns that cases need."""

    AUTO = "auto"
    WORKER = "worker"
    OWN = "own"


@conforming.command()
def server(  # noqa: PLR0913 - each is an option of the command
    url: Annotated[
        str, typer.Argument(metavar="URL", help="Where the server is, such as ws://127.0.0.1:8787.")
    ],
    *,
    only: Only = None,
    report: Reports = None,
    token_file: Annotated[Path | None, typer.Option(help="A file with the token to say hello with.")] = None,
    agent: Annotated[
        AgentChoice,
        typer.Option(help="Who runs turns: this kit as a worker, the server's own agent, or as it is."),
    ] = AgentChoice.AUTO,
    restart: Annotated[
        str | None, typer.Option(help="A command that kills the server's process and starts it anew.")
    ] = None,
    drain: Annotated[
        str | None, typer.Option(help="A command that tells the server to stop in good order.")
    ] = None,
    seed: Seed = None,
    jobs: Jobs = 4,
) -> None:
    """Run every case against a server. It should be one for tests: sessions are made, and stay."""
    from midstream.conformance.outcome import Failed  # noqa: PLC0415 - each command imports what it needs
    from midstream.conformance.servers.command import conform_server  # noqa: PLC0415 - likewise
    from midstream.conformance.servers.scene import Target  # noqa: PLC0415 - likewise

    forms = _forms(report)
    target = Target(
        url=url,
        token=None if token_file is None else token_file.read_text("utf-8").strip(),
        restart=restart,
        drain=drain,
        seed=secrets.randbelow(2**31) if seed is None else seed,
    )
    try:
        found = asyncio.run(conform_server(target, only=only or (), agent=agent.value, jobs=jobs, done=_say))
    except (Failed, OSError) as error:
        sys.stderr.write(f"midstream: {url} cannot be tested: {error}\n")
        raise typer.Exit(2) from error
    finish(found, forms)


def finish(found: Any, forms: list[tuple[str, Path]]) -> None:  # noqa: ANN401 - a report, imported late
    """Write the reports, say how it went, and end with 1 where something failed."""
    from midstream.conformance.report import FORMS  # noqa: PLC0415 - each command imports what it needs

    for form, path in forms:
        path.write_text(FORMS[form](found), "utf-8")
    sys.stdout.write(f"\n{found.summary()}\n")
    raise typer.Exit(0 if found.is_good else 1)


def _forms(reports: list[str] | None) -> list[tuple[str, Path]]:
    from midstream.conformance.report import FORMS  # noqa: PLC0415 - each command imports what it needs

    forms: list[tuple[str, Path]] = []
    for report in reports or []:
        form, _, path = report.partition(":")
        if form not in FORMS or not path:
            raise typer.BadParameter(
                f"{report!r} is no report. Expected {', '.join(FORMS)}, a colon and a path."
            )
        forms.append((form, Path(path)))
    return forms


def _say(result: Any) -> None:  # noqa: ANN401 - a result, imported late
    from midstream.conformance.report import line  # noqa: PLC0415 - each command imports what it needs

    sys.stdout.write(f"{line(result)}\n")
    sys.stdout.flush()


@conforming.command(context_settings={"ignore_unknown_options": True})
def client(
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="-- COMMAND", help="What starts the client under test; see docs/conformance.md."
        ),
    ],
    *,
    only: Only = None,
    report: Reports = None,
    encoding: Annotated[Encoding, typer.Option(help="What the client is to speak.")] = Encoding.MSGPACK,
    patience: Annotated[
        float, typer.Option(min=0.1, help="Seconds that it may take for what is due at once.")
    ] = 8.0,
    seed: Seed = None,
    jobs: Jobs = 4,
) -> None:
    """Run every case against a client, which is told what to do on its standard input."""
    from midstream.conformance.clients.command import conform_client  # noqa: PLC0415 - each command imports what it needs
    from midstream.conformance.clients.scene import Settings  # noqa: PLC0415 - likewise

    forms = _forms(report)
    chance = secrets.randbelow(2**31) if seed is None else seed
    settings = Settings(encoding=encoding.value, patience=patience, seed=chance)
    found = asyncio.run(conform_client(command, only=only or (), settings=settings, jobs=jobs, done=_say))
    finish(found, forms)
