"""Whole conversations by chance: any change, any loss, in any order, from a seed (SPEC 1.4, 12)."""

from collections.abc import Callable
from random import Random

from midstream.conformance.clients.cases.paging import finish, give
from midstream.conformance.clients.cases.talks import DONE, OPEN, THOUGHT, TOOL
from midstream.conformance.clients.conversation import Conversation, Mode
from midstream.conformance.clients.scene import Scene
from midstream.conformance.clients.scripted import Peer
from midstream.conformance.clients.suite import SUITE
from midstream.protocol.frames import Closed, Mark, ServerFrame, Sync
from midstream.protocol.live import can_append
from midstream.protocol.model import Part, TextPart

STEPS = 80
LIMIT = 4
"""Messages of a reset, so that the window is seldom all there is."""
MODES: tuple[Mode, ...] = ("replay", "catchup", "reset")
PARTS: tuple[Part, ...] = (OPEN, THOUGHT, TOOL, DONE)


class Chances:
    """One conversation, and what becomes of its frames."""

    def __init__(self, scene: Scene, peer: Peer, talk: Conversation, random: Random) -> None:
        """Begin with a client that has it all."""
        self.scene = scene
        self.peer = peer
        self.talk = talk
        self.random = random
        self.losses = 3
        """Frames that are lost, and loads that end, at most: a client rightly waits longer after each."""
        self.is_behind = False
        """A frame was lost, and the client may know it or not."""

    async def step(self) -> None:
        """Let something happen."""
        chance = self.random.random()
        if chance < 0.78:
            await self._change()
        elif chance < 0.90 or self.is_behind:
            await self.settle()
        else:
            await self.random.choice([self._cut, self._conflate, self._reload, self._page, self._new_epoch])()

    async def settle(self) -> None:
        """Let the client find what it lost, and see that it is right again."""
        if self.is_behind:
            await self.peer.send(Mark(self.talk.channel, self.talk.version))
            call, _ = await self.scene.subscribed(self.peer)
            if self.random.random() < 0.3:
                await self.peer.send(self._next())  # before the answer: ignored, and in it
            await self.scene.answer_sync(self.peer, call, self.talk)
            self.is_behind = False
        await self.scene.reached(self.talk)

    async def _change(self) -> None:
        frame = self._next()
        if self.losses and self.random.random() < 0.06:
            self.losses -= 1
            self.is_behind = True
            return
        await self.peer.send(frame)
        if not self.is_behind and self.random.random() < 0.1:
            await self.peer.send(Mark(self.talk.channel, self.talk.version))

    def _next(self) -> ServerFrame:
        talk, random = self.talk, self.random
        last = talk.now.messages.get(talk.now.session.message_count)
        text = random.choice(["a", "some words ", "ünï\U0001f600", "x" * 300])
        if last is None or last.state != "streaming":
            return random.choice([self._begin, self._begin, lambda: talk.user(text), self._rare])()
        agents = [number for number, message in talk.now.messages.items() if message.role == "agent"]
        can: list[Callable[[], ServerFrame]] = [
            lambda: talk.put(DONE, sequence=random.choice(agents), durable=True),
            lambda: talk.put(random.choice(PARTS)),
            lambda: talk.put(DONE, random.choice(PARTS), durable=True),
            lambda: talk.trim(random.randint(0, len(last.parts))),
            talk.skip,
            lambda: talk.title(text),
        ]
        if last.parts and can_append(last.parts[-1]):
            can += [lambda: talk.short(text)] * 6
        growing = [part.sequence for part in last.parts if can_append(part)]
        if growing:
            can += [lambda: talk.append(text, part=random.choice(growing))] * 4
        if random.random() < 0.08:
            return talk.finish()
        return random.choice(can)()

    def _begin(self) -> ServerFrame:
        return self.talk.agent(OPEN)

    def _rare(self) -> ServerFrame:
        return self.talk.clear() if self.random.random() < 0.3 else self.talk.skip(3)

    async def _cut(self) -> None:
        self.peer.drop()
        for _ in range(self.random.randint(0, 6)):
            self._next()
        if self.random.random() < 0.3:
            self.talk.crash()
        self.peer = await self.scene.peer()
        self.talk.channel += 1
        await self.scene.sync(self.peer, self.talk)
        await self.scene.reached(self.talk)

    async def _conflate(self) -> None:
        await self.scene.reached(self.talk)
        since = self.talk.version
        for _ in range(self.random.randint(1, 6)):
            self._next()
        mode = self.random.choice(MODES)
        await self.peer.send(Sync(self.talk.channel, self.talk.payload(mode, since, limit=LIMIT)))
        await self.scene.reached(self.talk)

    async def _reload(self) -> None:
        if not self.losses:
            return
        self.losses -= 1
        await self.peer.send(Closed(self.talk.channel, "reload", True))
        self.talk.channel += 1
        call = await self.scene.call(self.peer, "subscribe", within=self.scene.patience + 30)
        self._next()
        await self.scene.answer_sync(self.peer, call, self.talk)
        await self.scene.reached(self.talk)

    async def _page(self) -> None:
        state = await self.scene.reached(self.talk)
        if not state.has_earlier or "pages" not in self.scene.driver.ready.can:
            return
        loading, call = await self.scene.page(self.peer, self.talk, 2)
        for _ in range(self.random.randint(0, 3)):
            await self.peer.send(self._next())
        await give(self.peer, self.talk, call)
        await finish(self.scene, self.peer, self.talk, loading)
        await self.scene.reached(self.talk)

    async def _new_epoch(self) -> None:
        await self.scene.reached(self.talk)
        await self.peer.send(self.talk.new_epoch("of a new epoch"))
        await self.scene.reached(self.talk)


def register(number: int) -> None:
    """Register the conversation of one number."""

    @SUITE.case(f"chance.{number}", "1.4", "G6", "G7", "R1", "R2", "R4", "R13", seconds=120)
    async def conversation(scene: Scene) -> None:
        """Whatever happens to a conversation, what the client shows is what the session was."""
        random = Random(f"{scene.settings.seed} {number}")  # noqa: S311 - it must come again from its seed
        talk = Conversation()
        talk.user("question")
        talk.agent(TextPart(text="answer", state="done"), state="done")
        for _ in range(4):
            talk.user("more")
        peer = await scene.open(talk, limit=LIMIT)
        chances = Chances(scene, peer, talk, random)
        for _ in range(STEPS):
            await chances.step()
        await chances.settle()


for _number in range(1, 9):
    register(_number)
