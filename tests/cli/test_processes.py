"""The command line from end to end: real processes, real sockets, real files."""

import json
import signal
import socket
from pathlib import Path

from midstream.cli.render import TAKEN_BACK
from midstream.cli.serve import LISTENING
from midstream.cli.talk import OPEN_QUESTION
from tests.cli.processes import DEAF, WAITING, free_port, serving, started


async def test_a_piped_chat_is_answered_and_seen_by_who_follows(tmp_path: Path) -> None:
    """One serves, one chats, one follows; then the file has what both saw."""
    async with serving(tmp_path) as (server, url):
        async with started("chat", url, "s", folder=tmp_path, typing=True) as first:
            await first.type("hello")
            assert (await first.ended()).code == 0
        async with started("tail", url, "s", "--json", folder=tmp_path) as following:
            await following.until_note("Following session s")
            async with started("chat", url, "s", folder=tmp_path, typing=True) as chat:
                await chat.type("use a tool", "delete", "y, go on", "question", "1", "2,3", "-")
                ended = await chat.ended()
            assert ended.code == 0, ended
            await following.until("Thank you!")
        server.signal(signal.SIGTERM)
        stopped = await server.ended()
    assert stopped.code == 0, stopped
    assert "Stopping" in stopped.out
    assert stopped.err == ""
    for said in (
        "Hello! I am the **demo agent**",
        "**3 words**",
        "approved by local: go on",
        "| small | olives",
    ):
        assert ended.out.count(said) == 1
    async with started("inspect", "chat.db", "s", folder=tmp_path) as inspecting:
        messages = [json.loads(line) for line in (await inspecting.ended()).out.splitlines()]
    assert [message["sequence"] for message in messages] == list(range(1, 9))
    assert {part["state"] for message in messages for part in message["parts"] if "state" in part} <= {
        "done",
        "completed",
    }


async def test_a_server_without_an_agent_of_its_own_leaves_turns_to_workers(tmp_path: Path) -> None:
    """Three processes: who serves, who answers, who asks."""
    async with serving(tmp_path, "--agent", "remote") as (server, url):
        async with started("worker", url, "demo", folder=tmp_path) as worker:
            async with started("chat", url, "s", folder=tmp_path, typing=True) as chat:
                await chat.type("hello")
                ended = await chat.ended()
            assert ended.code == 0, ended
            assert "Hello! I am the **demo agent**" in ended.out
            worker.signal(signal.SIGTERM)
            assert (await worker.ended()).code == 0
        server.signal(signal.SIGTERM)
        assert (await server.ended()).code == 0


async def test_a_piped_chat_tells_by_its_exit_code_what_went_wrong(tmp_path: Path) -> None:
    """A turn that fails, and a question that nobody is left to answer."""
    async with serving(tmp_path) as (_, url):
        for prompt, said in (("fail", "demo_failed"), ("delete", OPEN_QUESTION)):
            async with started("chat", url, prompt, folder=tmp_path, typing=True) as chat:
                await chat.type(prompt)
                ended = await chat.ended()
            assert ended.code == 1
            assert said in ended.out


async def test_a_server_that_is_killed_in_mid_sentence_comes_back(tmp_path: Path) -> None:
    """The chat says what was taken back, shows how the turn ended, and goes on."""
    (tmp_path / "waiting.py").write_text(WAITING)
    port = str(free_port())
    async with started("chat", f"ws://127.0.0.1:{port}", "s", folder=tmp_path, typing=True) as chat:
        async with serving(tmp_path, "--agent", "waiting:agent", "--port", port) as (server, _):
            await chat.type("tell me")
            await chat.until("one two three")
            server.signal(signal.SIGKILL)
            assert (await server.ended()).code == -signal.SIGKILL
            await chat.until("offline")
        async with serving(tmp_path, "--port", port):
            await chat.until("runtime_interrupted")
            await chat.type("hello")
            await chat.until("You said “hello”")
            ended = await chat.ended()
    assert ended.code == 1
    assert ended.out.count("tell me") == 1
    assert (
        ended.out.index("one two three")
        < ended.out.index(TAKEN_BACK)
        < ended.out.index("runtime_interrupted")
    )


async def test_the_second_signal_ends_the_server_at_once(tmp_path: Path) -> None:
    """The first one lets a turn end; who does not want to wait for it sends another."""
    (tmp_path / "waiting.py").write_text(WAITING)
    async with (
        serving(tmp_path, "--agent", "waiting:agent", "--drain-seconds", "100") as (server, url),
        started("chat", url, "s", folder=tmp_path, typing=True) as chat,
    ):
        await chat.type("tell me")
        await chat.until("one two three")
        server.signal(signal.SIGINT)
        await server.until("Stopping")
        server.signal(signal.SIGINT)
        assert (await server.ended()).code == 128 + signal.SIGINT


async def test_a_server_whose_agent_cannot_be_cancelled_ends_all_the_same(tmp_path: Path) -> None:
    """The turn is interrupted, the file is left in good order, and the agent ends with the process."""
    (tmp_path / "deaf.py").write_text(DEAF)
    arguments = ("--agent", "deaf:agent", "--drain-seconds", "0")
    async with (
        serving(tmp_path, *arguments) as (server, url),
        started("chat", url, "s", folder=tmp_path, typing=True) as chat,
    ):
        await chat.type("tell me")
        await chat.until("one two three")
        server.signal(signal.SIGTERM)
        stopped = await server.ended()
        assert stopped.code == 0, stopped
        assert "1 task of the agent" in stopped.out
    assert not (tmp_path / "chat.db-wal").exists()
    async with started("inspect", "chat.db", "s", folder=tmp_path) as inspecting:
        assert "runtime_interrupted" in (await inspecting.ended()).out


async def test_a_port_and_a_database_belong_to_one_server(tmp_path: Path) -> None:
    """The second server says in one line which of them is taken, and exits with 1."""
    async with serving(tmp_path) as (_, url):
        port = url.rpartition(":")[2]
        for arguments, said in (
            (("--port", port, "--database", "other.db"), f"127.0.0.1 port {port} is taken"),
            (("--port", "0", "--database", "chat.db"), "chat.db is in use"),
        ):
            async with started("serve", *arguments, "--log-level", "warning", folder=tmp_path) as second:
                ended = await second.ended()
            assert ended.code == 1
            assert ended.out == ""
            assert said in ended.err
            assert ended.err.count("\n") == 1


async def test_settings_come_from_variables_and_flags_win(tmp_path: Path) -> None:
    """What is not given by a flag is read from the environment."""
    environment = {
        "MIDSTREAM_PORT": "0",
        "MIDSTREAM_DATABASE": "elsewhere.db",
        "MIDSTREAM_LOG_LEVEL": "error",
    }
    async with started("serve", "--database", "here.db", folder=tmp_path, environment=environment) as server:
        line = await server.until("Ctrl-C")
    assert line.startswith(LISTENING)
    assert "database here.db" in line
    assert not (tmp_path / "elsewhere.db").exists()


async def test_a_demo_is_left_without_a_trace_but_its_conversation(tmp_path: Path) -> None:
    """It starts a server, chats, ends the server; the next demo shows what was said."""
    port = free_port()

    async def demo(prompt: str) -> str:
        async with started("demo", "--port", str(port), folder=tmp_path, typing=True) as demo:
            await demo.type(prompt)
            ended = await demo.ended()
        assert ended.code == 0, ended
        assert ended.out.endswith("keeps the conversation: the next demo goes on with it.\n")
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0
        return ended.out

    assert f"midstream chat ws://127.0.0.1:{port} demo" in await demo("hello")
    out = await demo("use a tool")
    assert out.count("[user]\nhello\n") == 1
    assert "**3 words**" in out


async def test_a_demo_that_is_ended_ends_its_server(tmp_path: Path) -> None:
    """A closed terminal, or a kill, does not leave a server behind."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        port = free_port()
        async with started("demo", "--port", str(port), folder=tmp_path, typing=True) as demo:
            await demo.until("Join from")
            await demo.until("live")
            demo.signal(number)
            assert await demo.process.wait() == 128 + number
            assert "Traceback" not in (await demo.ended()).err
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0


async def test_a_demo_joins_a_server_that_is_there(tmp_path: Path) -> None:
    """And leaves it running."""
    async with serving(tmp_path) as (server, url):
        port = url.rpartition(":")[2]
        async with started("demo", "--port", port, folder=tmp_path, typing=True) as demo:
            await demo.type("hello")
            ended = await demo.ended()
        assert ended.code == 0, ended
        assert "already: joining it" in ended.out
        assert server.process.returncode is None
        async with started("chat", url, "demo", folder=tmp_path, typing=True) as chat:
            assert "You said “hello”" in (await chat.ended()).out


async def test_a_demo_that_cannot_serve_says_why(tmp_path: Path) -> None:
    """Another program has the port, or another server the database."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        other.settimeout(0.01)
        port = str(other.getsockname()[1])
        async with started("demo", "--port", port, folder=tmp_path) as demo:
            ended = await demo.ended()
    assert (ended.code, ended.out) == (1, "")
    assert f"Port {port} belongs to another program" in ended.err
    async with (
        serving(tmp_path),
        started("demo", "--port", str(free_port()), "--database", "chat.db", folder=tmp_path) as demo,
    ):
        ended = await demo.ended()
    assert (ended.code, ended.out) == (1, "")
    assert "chat.db is in use" in ended.err
    assert ended.err.count("\n") == 1


async def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    """`midstream inspect | head` writes no traceback."""
    async with serving(tmp_path) as (_, url), started("chat", url, "s", folder=tmp_path, typing=True) as chat:
        await chat.type("hello")
        await chat.ended()
    async with started("inspect", "chat.db", "s", folder=tmp_path, deaf=True) as inspecting:
        ended = await inspecting.ended()
    assert ended.code == 1
    assert ended.err == ""
