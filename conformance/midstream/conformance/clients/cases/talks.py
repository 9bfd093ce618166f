"""Sessions that many cases begin with."""

from midstream.conformance.clients.conversation import Conversation
from midstream.protocol.model import (
    InteractionPart,
    InteractionRequest,
    ReasoningPart,
    TextPart,
    ToolPart,
)

OPEN = TextPart(text="", state="streaming")
THOUGHT = ReasoningPart(text="", state="streaming")
DONE = TextPart(text="said", state="done")
TOOL = ToolPart(tool_call_id="call_1", tool_name="look", state="input-streaming")
APPROVAL = InteractionPart(
    interaction_id="i1",
    interaction_type="approval",
    status="pending",
    request=InteractionRequest(title="May I?"),
)


def streaming(session_id: str = "s1", *, channel: int = 1, internal: bool = False) -> Conversation:
    """Return a session in which an agent's text streams, in its second message."""
    talk = Conversation(session_id, channel=channel, internal=internal)
    talk.user("question")
    talk.agent(OPEN)
    return talk


def long(messages: int = 8, *, internal: bool = False) -> Conversation:
    """Return a session of so many messages, users' and agents' in turn, the last of which streams."""
    talk = Conversation(internal=internal)
    while talk.now.session.message_count < messages:
        number = talk.now.session.message_count + 1
        if number == messages:
            talk.agent(OPEN)
        elif number % 2:
            talk.user(f"question {number}")
        else:
            talk.agent(TextPart(text=f"answer {number}", state="done"), state="done")
    return talk


def in_turn() -> Conversation:
    """Return a session in which turn `t1` runs and streams."""
    talk = Conversation()
    talk.begin_turn("t1", talk.new_message("user", TextPart(text="question"), turn_id="t1"))
    talk.agent(OPEN, turn_id="t1")
    return talk
