"""Calls whose answer did not come, and handles that wait for turns (SPEC 4.7, 7.6, 8.1)."""

from msgspec import structs

from midstream.conformance.clients.cases.talks import APPROVAL, OPEN, in_turn, streaming
from midstream.conformance.clients.conversation import Conversation
from midstream.conformance.clients.scene import Scene
from midstream.conformance.clients.scripted import Asked, Peer
from midstream.conformance.clients.suite import SUITE
from midstream.conformance.outcome import expect
from midstream.protocol.calls import PromptResult, RespondResult, StopResult, TurnResult
from midstream.protocol.frames import Sync
from midstream.protocol.model import ApprovalResponse, InteractionPart, TextPart


async def prompt(scene: Scene, talk: Conversation, message_id: str, text: str = "do it") -> None:
    """Let the client hand in a prompt."""
    await scene.tell("prompt", session=talk.session_id, text=text, message_id=message_id)


async def came(scene: Scene, peer: Peer, message_id: str, text: str = "do it") -> Asked:
    """Wait for the next prompt, which is this one."""
    call = await scene.call(peer, "prompt")
    expect("the id of the prompt", call.value("message_id"), message_id)
    expect("the parts of the prompt", call.value("parts"), [{"type": "text", "text": text}])
    return call


async def shows(scene: Scene, talk: Conversation, message_id: str, *states: str) -> None:
    """Wait until the client shows one of these states for a prompt."""
    await scene.until(
        talk, lambda shown: shown.prompts.get(message_id) in states, f"prompt {message_id} as {states}"
    )


async def begins(scene: Scene, peer: Peer, talk: Conversation, call: Asked, turn_id: str) -> None:
    """Let a prompt start a turn, and answer it."""
    message = talk.new_message(
        "user", TextPart(text="do it"), message_id=str(call.value("message_id")), turn_id=turn_id
    )
    await peer.send(talk.begin_turn(turn_id, message))
    await scene.started(peer, call, turn_id)


@SUITE.case("prompting.turn", "8.1", "G2")
async def turn(scene: Scene) -> None:
    """A prompt starts a turn, and its handle shows it running and completed."""
    talk = Conversation()
    peer = await scene.open(talk)
    await prompt(scene, talk, "p1")
    call = await came(scene, peer, "p1")
    await shows(scene, talk, "p1", "pending")
    await begins(scene, peer, talk, call, "t1")
    await shows(scene, talk, "p1", "running")
    await peer.send(talk.agent(OPEN, turn_id="t1"))
    await peer.send(talk.short("done"))
    await peer.send(talk.end_turn("t1"))
    await shows(scene, talk, "p1", "completed")
    await scene.goes_on(peer, talk)
    expect("prompts that were not called for", peer.waiting("prompt"), 0)


@SUITE.case("prompting.again", "4.7", "G3", "R21")
async def again(scene: Scene) -> None:
    """A prompt whose answer was lost is sent again unchanged, under the same id, as often as it takes."""
    talk = Conversation()
    peer = await scene.open(talk)
    await prompt(scene, talk, "p1")
    await came(scene, peer, "p1")
    for number in range(3):
        peer.drop()
        peer = await scene.peer()
        await scene.sync(peer, talk)
        call = await came(scene, peer, "p1")
        if number == 2:
            await begins(scene, peer, talk, call, "t1")
    await peer.send(talk.end_turn("t1"))
    await shows(scene, talk, "p1", "completed")
    await scene.heard(peer)
    expect("prompts that were not called for", peer.waiting("prompt"), 0)


@SUITE.case("prompting.accepted_before_the_loss", "4.7", "G3", "R21")
async def accepted_before_the_loss(scene: Scene) -> None:
    """A prompt that was carried out, and whose answer was lost, makes no second message."""
    talk = Conversation()
    peer = await scene.open(talk)
    await prompt(scene, talk, "p1")
    await came(scene, peer, "p1")
    peer.drop()
    message = talk.new_message("user", TextPart(text="do it"), message_id="p1", turn_id="t1")
    talk.begin_turn("t1", message)
    talk.end_turn("t1")
    peer = await scene.peer()
    await scene.sync(peer, talk)
    call = await came(scene, peer, "p1")
    await scene.started(peer, call, "t1")
    await shows(scene, talk, "p1", "completed")
    await scene.goes_on(peer, talk)


@SUITE.case("prompting.offline", "4.7", "G3")
async def offline(scene: Scene) -> None:
    """Prompts written without a connection are kept, and sent in their order."""
    talk = Conversation()
    scene.server.welcomes = False
    await scene.connect()
    await scene.hold(talk)
    early = await scene.peer()
    for number in range(3):
        await prompt(scene, talk, f"p{number}", f"text {number}")
    expect("prompts before the welcome's subscribe", early.waiting("prompt"), 0)
    scene.server.welcomes = True
    early.drop()
    peer = await scene.peer()
    await scene.sync(peer, talk)
    for number in range(3):
        call = await came(scene, peer, f"p{number}", f"text {number}")
        await peer.answer(call, PromptResult(state="queued", message_id=f"p{number}", position=number + 1))
        if not number:
            await scene.heard(peer)


@SUITE.case("prompting.order", "7.6", "G2")
async def order(scene: Scene) -> None:
    """A prompt that is put off is not overtaken by a later one of the same session."""
    talk = Conversation()
    peer = await scene.open(talk)
    await prompt(scene, talk, "p1", "first")
    call = await came(scene, peer, "p1", "first")
    await prompt(scene, talk, "p2", "second")
    await peer.refuse(call, "overloaded", retryable=True)
    call = await came(scene, peer, "p1", "first")
    await peer.answer(call, PromptResult(state="queued", message_id="p1", position=1))
    await came(scene, peer, "p2", "second")


@SUITE.case("prompting.unknown_errors", "11.1")
async def unknown_errors(scene: Scene) -> None:
    """A code that the client does not know is obeyed by its `retryable`."""
    talk = Conversation()
    peer = await scene.open(talk)
    await prompt(scene, talk, "p1")
    call = await came(scene, peer, "p1")
    await peer.refuse(call, "brand_new", retryable=True)
    call = await came(scene, peer, "p1")
    await peer.refuse(call, "brand_new", retryable=False)
    await shows(scene, talk, "p1", "refused")
    await scene.goes_on(peer, talk)
    expect("prompts after the refusal", peer.waiting("prompt"), 0)


@SUITE.case("prompting.queued", "8.1", "G2", "R22")
async def queued(scene: Scene) -> None:
    """A queued prompt is seen to start its turn by the message that has its id."""
    talk = in_turn()
    peer = await scene.open(talk)
    await prompt(scene, talk, "p1")
    call = await came(scene, peer, "p1")
    await peer.send(talk.change(session=structs.replace(talk.now.session, queue=["p1"])))
    await peer.answer(call, PromptResult(state="queued", message_id="p1", position=1))
    await shows(scene, talk, "p1", "queued")
    await peer.send(talk.end_turn("t1"))
    message = talk.new_message("user", TextPart(text="do it"), message_id="p1", turn_id="t2")
    await peer.send(talk.begin_turn("t2", message))
    await shows(scene, talk, "p1", "running")
    await peer.send(talk.end_turn("t2", "stopped"))
    await shows(scene, talk, "p1", "stopped")


@SUITE.case("prompting.cancelled", "8.1", "G2", "G3")
async def cancelled(scene: Scene) -> None:
    """An input that leaves the queue and is in no message is asked for by the same prompt."""
    talk = in_turn()
    peer = await scene.open(talk)
    await prompt(scene, talk, "p1")
    call = await came(scene, peer, "p1")
    await peer.send(talk.change(session=structs.replace(talk.now.session, queue=["p1"])))
    await peer.answer(call, PromptResult(state="queued", message_id="p1", position=1))
    await shows(scene, talk, "p1", "queued")
    await peer.send(talk.change(session=structs.replace(talk.now.session, queue=[])))
    call = await came(scene, peer, "p1")
    await peer.answer(call, PromptResult(state="cancelled", message_id="p1"))
    await shows(scene, talk, "p1", "cancelled")


@SUITE.case("prompting.after_a_reset", "4.7", "R9")
async def after_a_reset(scene: Scene) -> None:
    """After a reset that does not show the turn, its handle is settled by the call `turn`."""
    talk = Conversation()
    peer = await scene.open(talk, limit=1)
    await prompt(scene, talk, "p1")
    call = await came(scene, peer, "p1")
    await begins(scene, peer, talk, call, "t1")
    await shows(scene, talk, "p1", "running")
    talk.end_turn("t1")
    talk.begin_turn("t2", talk.new_message("user", TextPart(text="later"), turn_id="t2"))
    talk.end_turn("t2")
    await peer.send(Sync(talk.channel, talk.payload("reset", limit=1)))
    call = await scene.call(peer, "turn")
    expect("the turn that is asked for", call.value("turn_id"), "t1")
    result = TurnResult(turn=talk.now.turns["t1"], epoch=talk.now.epoch, version=talk.version)
    await peer.answer(call, result)
    await shows(scene, talk, "p1", "completed")


@SUITE.case("prompting.respond", "7.8", "G10", needs=["respond"])
async def respond(scene: Scene) -> None:
    """A response whose answer was lost is sent again as it was, or given up: never taken for done."""
    talk = streaming()
    talk.put(APPROVAL, durable=True)
    peer = await scene.open(talk)
    responding = scene.attempt("respond", session=talk.session_id, interaction_id="i1")
    first = await scene.call(peer, "respond")
    peer.drop()
    peer = await scene.peer()
    await scene.sync(peer, talk)
    call = await scene.again_or_not(peer, first, responding)
    part = talk.last.parts[1]
    if isinstance(part, InteractionPart) and call is not None:
        given = structs.replace(
            part,
            status="resolved",
            response=ApprovalResponse(decision="approved"),
            resolved_at=talk.time(),
            resolved_by="local",
        )
        await peer.send(talk.put(given, durable=True))
        await peer.answer(call, RespondResult(interaction=given))
        expect("whether the response succeeded", await responding, True)
    await scene.goes_on(peer, talk)


@SUITE.case("prompting.stop", "7.7", "G18", "R24", needs=["stop"])
async def stop(scene: Scene) -> None:
    """A stop names its turn; one whose answer was lost is sent again as it was, or given up."""
    talk = in_turn()
    peer = await scene.open(talk)
    stopping = scene.attempt("stop", session=talk.session_id, turn_id="t1")
    first = await scene.call(peer, "stop")
    expect("the turn that is stopped", first.value("turn_id"), "t1")
    peer.drop()
    peer = await scene.peer()
    await scene.sync(peer, talk)
    call = await scene.again_or_not(peer, first, stopping)
    await peer.send(talk.end_turn("t1", "stopped"))
    if call is not None:
        await peer.answer(call, StopResult(stopped=True, turn_id="t1", cancelled=[], reason="stopped"))
        expect("whether the stop succeeded", await stopping, True)
    await scene.goes_on(peer, talk)
