"""What is typed reaches the agent, and what happens is on every screen once."""

from midstream.agents import Turn
from midstream.cli.chat import Chat
from midstream.client.client import Client
from tests.cli.conftest import Join, Person, Serve
from tests.cli.watched import WatchedScreen


async def typed(person: Person, *lines: str) -> None:
    """Type lines, each when the one before is done or asks something."""
    for line in lines:
        assert await person.chat.typed(line)
        await person.chat.settled()


async def test_two_people_see_the_same_conversation(serve: Serve, join: Join) -> None:
    """But for whose words they are, both screens have the same text."""
    async with serve() as server:
        one, two = await join(server.url), await join(server.url)
        await typed(one, "use a tool")
        await two.screen.until("**3 words**")
        assert one.screen.text.replace("[you]", "[user]") == two.screen.text
        assert one.screen.text.count("use a tool") == two.screen.text.count("use a tool")


async def test_who_comes_later_sees_what_was_said(serve: Serve, join: Join) -> None:
    """The conversation so far stands on the screen before anything is typed."""
    async with serve() as server:
        one = await join(server.url)
        await typed(one, "use a tool")
        late = await join(server.url)
        await late.screen.until("**3 words**")
        assert '✓ Count the words (count_words) {"text":"use a tool"} → ' in late.screen.text


async def test_an_approval_is_asked_and_the_answer_is_everywhere(serve: Serve, join: Join) -> None:
    """A wrong answer is asked again; the other one no longer needs to answer."""
    async with serve() as server:
        one, two = await join(server.url), await join(server.url)
        await typed(one, "delete")
        await two.screen.until("[y]es or [n]o?")
        await typed(one, "perhaps")
        assert "Please type y or n" in one.screen.text
        await typed(two, "n, not now")
        for person in (one, two):
            await person.screen.until("denied by local: not now")
            await person.screen.until("Then it stays.")
        await typed(two, "y")
        await two.screen.until("[you]\ny\n")


async def test_questions_are_asked_one_by_one(serve: Serve, join: Join) -> None:
    """Options by number, several of them, free text."""
    async with serve() as server:
        one = await join(server.url)
        await typed(one, "question", "3", "2", "1,4", "no cutlery")
        assert "'3' is not offered" in one.screen.text
        assert "| large | mushrooms, basil | no cutlery |" in one.screen.text
        assert not one.chat.failed


async def test_a_question_can_be_left_open_and_taken_up_again(serve: Serve, join: Join) -> None:
    """In between, lines are prompts for the agent that waits."""
    async with serve() as server:
        one = await join(server.url)
        await typed(one, "delete")
        assert await one.chat.typed("/later")
        assert await one.chat.typed("hello")
        await one.screen.until("waits (place 1): hello")
        assert await one.chat.typed("/answer")
        await one.screen.until("[y]es or [n]o?", times=2)
        await typed(one, "y")
        assert "You add: *hello*" in one.screen.text


async def test_a_stop_ends_the_turn_and_takes_back_what_waits(serve: Serve, join: Join) -> None:
    """The screen says what became of both."""
    async with serve() as server:
        one = await join(server.url)
        await typed(one, "delete")
        await typed(one, "/later", "/stop")
        await one.screen.until("! stopped")
        assert "cancelled (turn_stopped)" in one.screen.text
        await typed(one, "/stop")
        assert "nothing runs" in one.screen.text


async def test_approvals_can_be_given_without_asking_and_asked_for_again(serve: Serve, join: Join) -> None:
    """Also the one that waits; every screen says who chose so, and what was given."""
    async with serve() as server:
        one, two = await join(server.url), await join(server.url)
        await typed(one, "delete")
        await two.screen.until("[y]es or [n]o?")
        await typed(two, "/later", "/approvals")
        await two.screen.until("approvals are asked for")
        await typed(two, "/approvals always")
        for person in (one, two):
            await person.screen.until("Approvals are given without asking")
            await person.screen.until("approved by local (without asking)")
        await one.session.until(lambda: one.session.turn is None)
        await typed(one, "note milk", "delete")
        await one.screen.until("approved by local (without asking)", times=2)
        await typed(one, "/approvals")
        await one.screen.until("approvals are given, as local chose")
        await typed(one, "/approvals ask")
        await one.screen.until("Approvals are asked for")
        await one.session.until(lambda: one.session.turn is None)
        await typed(one, "note bread", "delete")
        await one.screen.until("[y]es or [n]o?", times=2)
        await typed(one, "n")


async def test_what_waits_is_listed_and_can_be_taken_back(serve: Serve, join: Join) -> None:
    """The last own input goes first; those of others stay."""
    async with serve() as server:
        one, two = await join(server.url), await join(server.url)
        await typed(one, "delete", "/later")
        await two.screen.until("[y]es or [n]o?")
        await two.chat.typed("/later")
        await two.chat.typed("from two")
        await two.screen.until("waits (place 1): from two")
        await one.chat.typed("from one")
        await one.screen.until("waits (place 2): from one")
        await one.chat.typed("/queue")
        assert "1. (typed elsewhere)\n· 2. from one\n" in one.screen.text
        await one.chat.typed("/cancel")
        await one.screen.until("taken back: from one")
        await one.chat.typed("/cancel")
        await one.screen.until("nothing of yours waits")
        assert len(two.session.queue) == 1
        await one.chat.typed("/stop")
        await one.screen.until("! stopped")


async def test_commands_explain_themselves_and_wrong_ones_are_not_sent(serve: Serve, join: Join) -> None:
    """A misspelled command does not become a prompt, and quit leaves."""
    async with serve() as server:
        one = await join(server.url)
        await typed(one, "/help", "/hlep", "/later", "/answer", "", "/queue")
        assert "/stop: " in one.screen.text
        assert "there is no /hlep" in one.screen.text
        assert one.screen.text.count("nothing is asked") == 2
        assert "nothing waits" in one.screen.text
        assert one.session.messages == []
        assert not await one.chat.typed("/quit")


async def test_a_restart_of_the_server_prints_nothing_twice(serve: Serve, join: Join) -> None:
    """What was said stays, what is typed meanwhile is kept and sent once."""
    async with serve() as server:
        one = await join(server.url)
        await typed(one, "use a tool")
        port = server.port
    await one.screen.until("offline")
    await one.chat.typed("hello")
    await one.screen.until("kept until the connection is back: hello")
    async with serve(port=port):
        await one.chat.settled()
        assert one.screen.text.count("[you]\nuse a tool\n") == 1
        assert one.screen.text.count("**3 words**") == 1
        assert one.screen.text.count("[you]\nhello\n") == 1
        assert not one.chat.failed


async def test_a_turn_that_fails_is_remembered(serve: Serve, join: Join) -> None:
    """A script that pipes prompts in learns it by the exit code."""
    async with serve() as server:
        one = await join(server.url)
        await typed(one, "hello")
        assert not one.chat.failed
        await typed(one, "fail")
        assert one.chat.failed
        assert one.screen.text.count("demo_failed") == 1


async def test_earlier_messages_are_shown_on_request(serve: Serve) -> None:
    """A long conversation begins at its end, and goes back page by page."""

    async def echo(turn: Turn) -> None:
        async with turn.step() as step, step.text() as text:
            await text.append(f"<{turn.prompt_text}>")

    async with serve(echo) as server, Client(server.url) as client:
        session = await client.session("s", create=True)
        for number in range(15):
            await (await session.prompt(str(number))).finished()
        await session.close()
        session = await client.session("s", limit=4)
        screen = WatchedScreen()
        chat = Chat(session, screen)
        await chat.draw()
        assert "<12>" not in screen.text
        await chat.typed("/earlier")
        await screen.until("so far the earlier messages")
        assert "<12>" in screen.text
        assert "<2>" not in screen.text
        await chat.typed("/earlier")
        await screen.until("so far the earlier messages", times=2)
        await chat.typed("/earlier")
        await screen.until("there is nothing earlier")
        assert [screen.text.count(f"<{number}>") for number in range(15)] == [1] * 15
        await chat.close()
