"""The commands and their options; each ends in one clear line where it cannot do what it is asked.

Each imports what it needs when it runs: a chat needs no server, and a server no terminal.
"""

# ruff: noqa: PLC0415 - the reason stands above

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from midstream.cli.conform import conforming
from midstream.cli.failure import MISUSED, CommandFailed
from midstream.cli.options import SecretFile, SessionId, TokenFile, Url

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells count it."""

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Durable, resumable chat sessions for streaming agents.",
)
app.add_typer(conforming, name="conform")


def _version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it so
    if wanted:
        sys.stdout.write(f"midstream {version('midstream')}\n")
        raise typer.Exit


@app.callback()
def _midstream(
    *,
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


@app.command()
def serve(  # noqa: PLR0913 - each is an option of the command
    *,
    agent: Annotated[
        str | None,
        typer.Option(
            help="demo, replay:DIR, module:name, or remote for workers. [MIDSTREAM_AGENT]", show_default=False
        ),
    ] = None,
    database: Annotated[
        str | None, typer.Option(help="The SQLite file; it is made where it is missing. [MIDSTREAM_DATABASE]")
    ] = None,
    host: Annotated[
        str | None, typer.Option(help="Beyond loopback it needs tokens and TLS. [MIDSTREAM_HOST]")
    ] = None,
    port: Annotated[int | None, typer.Option(help="0 takes a free one. [MIDSTREAM_PORT]")] = None,
    drain_seconds: Annotated[
        int | None, typer.Option(help="How long turns may go on after Ctrl-C. [MIDSTREAM_DRAIN_SECONDS]")
    ] = None,
    log_level: Annotated[
        str | None, typer.Option(help="debug, info, warning or error. [MIDSTREAM_LOG_LEVEL]")
    ] = None,
    log_format: Annotated[
        str | None, typer.Option(help="auto, console or json. [MIDSTREAM_LOG_FORMAT]")
    ] = None,
    page: Annotated[
        str | None, typer.Option(help="Serve the page in this folder instead of ours. [MIDSTREAM_PAGE]")
    ] = None,
    no_page: Annotated[bool, typer.Option("--no-page", help="Serve no page.")] = False,
    token_secret_file: SecretFile = None,
    token_keys: Annotated[
        str | None, typer.Option(help="A JWKS file with public keys of tokens. [MIDSTREAM_TOKEN_KEYS]")
    ] = None,
    cert: Annotated[str | None, typer.Option(help="The certificate for TLS. [MIDSTREAM_TLS_CERT]")] = None,
    key: Annotated[str | None, typer.Option(help="The certificate's key. [MIDSTREAM_TLS_KEY]")] = None,
    anyone_may_connect: Annotated[
        bool, typer.Option("--anyone-may-connect", help="Listen beyond loopback without tokens.")
    ] = False,
    tls_ends_at_a_proxy: Annotated[
        bool, typer.Option("--tls-ends-at-a-proxy", help="Listen beyond loopback without TLS of its own.")
    ] = False,
    lab: Annotated[
        bool, typer.Option("--lab", help="Let the page's link lab kill and restart this server.")
    ] = False,
    speed: Annotated[
        float,
        typer.Option(
            min=0, envvar="MIDSTREAM_SPEED", help="How fast the built-in agents stream; 0 for without pauses."
        ),
    ] = 1.0,
) -> None:
    """Run a server until Ctrl-C. Flags win over MIDSTREAM_* variables, which every setting has."""
    from midstream.cli.serve import default_page
    from midstream.cli.serve import serve as run
    from midstream.cli.tokens import secret_from
    from midstream.server import logs
    from midstream.server.config import NO_PAGE, Config, ConfigError

    with _failures():
        if no_page:
            page = NO_PAGE
        elif page is None and not os.environ.get("MIDSTREAM_PAGE"):
            page = default_page()
        try:
            config = Config.from_env(
                os.environ,
                agent=agent,
                database=database,
                host=host,
                port=port,
                drain_seconds=drain_seconds,
                log_level=log_level,
                log_format=log_format,
                page=page,
                token_secret=secret_from(token_secret_file),
                token_keys=token_keys,
                tls_cert=cert,
                tls_key=key,
                anyone_may_connect=anyone_may_connect or None,
                tls_ends_at_a_proxy=tls_ends_at_a_proxy or None,
            )
            config.check_host(config.host)
        except ConfigError as error:
            raise CommandFailed(str(error), code=MISUSED) from error
        logs.configure(config.log_format, config.log_level)
        for variable, meant in Config.misspelled(os.environ).items():
            sys.stderr.write(f"midstream: {variable} is no setting and is ignored. Is {meant} meant?\n")
        # as `python -m` does: an agent is mostly a file where one is
        sys.path.insert(0, str(Path.cwd()))
        _run(run(config, speed=speed, out=sys.stdout, lab=lab))


@app.command()
def worker(  # noqa: PLR0913 - each is an option of the command
    url: Url,
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="module:name, demo or replay:DIR.")],
    *,
    name: Annotated[
        str | None,
        typer.Option(
            help="The worker's own; kept over restarts, its turns come back to it.", show_default=False
        ),
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="How many turns it runs at a time.")] = 1,
    resume: Annotated[
        bool, typer.Option("--resume", help="The agent goes on with turns that another process began.")
    ] = False,
    drain_seconds: Annotated[
        float,
        typer.Option(
            min=0,
            envvar="MIDSTREAM_DRAIN_SECONDS",
            help="How long turns may go on after Ctrl-C, then given up.",
        ),
    ] = 30.0,
    log_level: Annotated[
        str, typer.Option(envvar="MIDSTREAM_LOG_LEVEL", help="debug, info, warning or error.")
    ] = "info",
    log_format: Annotated[
        str, typer.Option(envvar="MIDSTREAM_LOG_FORMAT", help="auto, console or json.")
    ] = "auto",
    speed: Annotated[
        float, typer.Option(min=0, envvar="MIDSTREAM_SPEED", help="How fast the built-in agents stream.")
    ] = 1.0,
    token_file: TokenFile = None,
) -> None:
    """Run an agent's turns for a server that is started with --agent remote, until Ctrl-C."""
    from midstream.cli.tokens import token_from
    from midstream.cli.work import work
    from midstream.server import logs
    from midstream.server.config import Config, ConfigError

    with _failures():
        try:
            config = Config.from_env({}, log_level=log_level, log_format=log_format)
        except ConfigError as error:
            raise CommandFailed(str(error), code=MISUSED) from error
        logs.configure(config.log_format, config.log_level)
        sys.path.insert(0, str(Path.cwd()))
        _run(
            work(
                url,
                agent,
                name=name,
                concurrency=concurrency,
                resume=resume,
                drain_seconds=drain_seconds,
                speed=speed,
                out=sys.stdout,
                token=token_from(token_file),
            )
        )


@app.command()
def chat(url: Url, session_id: SessionId, *, token_file: TokenFile = None) -> None:
    """Chat in a session; it is made where there is none. Reads prompts from a pipe, too."""
    from midstream.cli.talk import talk
    from midstream.cli.tokens import token_from

    with _failures():
        token = token_from(token_file)
        raise typer.Exit(_run(talk(url, session_id, stdin=sys.stdin, stdout=sys.stdout, token=token)))


@app.command()
def token(
    *,
    sub: Annotated[str, typer.Option(help="The subject: who the token is for.")],
    scopes: Annotated[
        str | None, typer.Option(help="With commas: read, write, internal, agent, admin. Else read,write.")
    ] = None,
    sessions: Annotated[
        str | None, typer.Option(help="With commas: ids, and beginnings of ids that end in *.")
    ] = None,
    ttl: Annotated[str, typer.Option(help="How long it is good: 30s, 15m, 1h, 7d.")] = "1h",
    token_secret_file: SecretFile = None,
) -> None:
    """Print a token for development. An application mints its own, where its users log in."""
    from midstream.cli.tokens import mint_token

    with _failures():
        minted = mint_token(
            subject=sub, scopes=scopes, sessions=sessions, ttl=ttl, secret_file=token_secret_file
        )
        sys.stdout.write(f"{minted}\n")


@app.command()
def tail(
    url: Url,
    session_id: SessionId,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON lines.")] = False,
    internal: Annotated[bool, typer.Option("--internal", help="Show internal messages, too.")] = False,
    token_file: TokenFile = None,
) -> None:
    """Print every change of a session as it comes."""
    from midstream.cli.tail import tail as follow
    from midstream.cli.tokens import token_from

    with _failures():
        _run(
            follow(
                url,
                session_id,
                as_json=as_json,
                include_internal=internal,
                out=sys.stdout,
                notes=sys.stderr,
                token=token_from(token_file),
            )
        )


@app.command()
def inspect(
    database: Annotated[Path, typer.Argument(help="The SQLite file.")],
    session_id: Annotated[
        str | None, typer.Argument(metavar="[SESSION]", help="Print this one's messages.")
    ] = None,
) -> None:
    """Print what a database holds as JSON lines, without a server: its sessions, or the messages of one."""
    from midstream.cli.inspect import inspect as read

    with _failures():
        for line in read(database, session_id):
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


@app.command()
def backup(
    source: Annotated[Path, typer.Argument(metavar="DATABASE", help="The SQLite file, in use or not.")],
    destination: Annotated[Path, typer.Argument(help="The copy; there must be no such file.")],
) -> None:
    """Copy a database, while its server runs or not, as it is at one moment; the copy is checked."""
    from midstream.cli.upkeep import backup as copy

    with _failures():
        sys.stdout.write(f"{copy(source, destination)}\n")


@app.command()
def check(database: Annotated[Path, typer.Argument(help="The SQLite file, in use or not.")]) -> None:
    """Say whether a database is sound: what SQLite checks, and what must hold between its rows."""
    from midstream.cli.upkeep import check as look

    with _failures():
        for line in look(database):
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()


class Form(StrEnum):
    """The forms of a session in a file, besides midstream's own."""

    FOUR_TYPE = "four-type"


@app.command("export")
def export_session(
    database: Annotated[Path, typer.Argument(help="The SQLite file.")],
    session_id: SessionId,
    *,
    to: Annotated[
        Form | None, typer.Option("--to", help="Write the older form, which has no place for everything.")
    ] = None,
) -> None:
    """Print a session as JSON lines that `import` reads back, without a server."""
    from midstream.cli.exporting import export, export_four_type

    with _failures():
        lost = Counter[str]()
        lines = export(database, session_id) if to is None else export_four_type(database, session_id, lost)
        for line in lines:
            sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
        for what, count in sorted(lost.items()):
            sys.stderr.write(f"midstream: lost in the older form: {what} ({count})\n")


@app.command("import")
def import_session(
    database: Annotated[Path, typer.Argument(help="The SQLite file; it is made where it is missing.")],
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="What `export` printed; - is the standard input.")
    ],
    *,
    session_id: Annotated[
        str | None, typer.Option("--session", help="Give the session this id.", show_default=False)
    ] = None,
    form: Annotated[Form | None, typer.Option("--from", help="Read the older form.")] = None,
) -> None:
    """Read a session from JSON lines into a database that no server uses meanwhile: all of it, or nothing."""
    from midstream.cli.importing import import_file

    with _failures():
        session = import_file(database, file, session_id, is_four_type=form is not None)
        sys.stdout.write(f"Imported {session.session_id}: {session.message_count} message(s)\n")


@app.command()
def demo(
    *,
    port: Annotated[int, typer.Option(help="Where the demo's server listens.")] = 8787,
    database: Annotated[Path, typer.Option(help="The demo's database.")] = Path("demo.db"),
    session_id: Annotated[str, typer.Option("--session", help="The session's id.")] = "demo",
) -> None:
    """Start a server with the demo agent and chat with it here; a second terminal can join."""
    from midstream.cli.demo import demo as run

    with _failures():
        raise typer.Exit(
            run(port=port, database=database, session_id=session_id, stdin=sys.stdin, stdout=sys.stdout)
        )


def _run(work: Coroutine[Any, Any, int | None]) -> int:
    return asyncio.run(work) or 0


@contextmanager
def _failures() -> Generator[None]:
    """Turn what can go wrong into one line and an exit code."""
    try:
        yield
    except CommandFailed as error:
        sys.stderr.write(f"midstream: {error}\n")
        raise typer.Exit(error.code) from error
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        # the reader of the pipe has seen enough; nothing may be flushed into it any more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(1) from None
