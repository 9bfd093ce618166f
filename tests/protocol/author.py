"""A small server of one session, for the merge law of SPEC.md and that of the code to read alike."""

import json
import random
from typing import Any, TypeAlias

from midstream.protocol.values import Value

Map: TypeAlias = dict[str, Any]
Frame: TypeAlias = list[Any]


class Author:
    """Says what happens, and the syncs that would be due."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.version = 1
        self.messages: list[Map] = []
        self._past: dict[int, str] = {}
        self.session: Map = {
            "session_id": "s", "revision": 1, "created_at": 0, "updated_at": 0, "message_count": 0,
        }  # fmt: skip

    def reset(self, limit: int) -> Frame:
        """The sync for a reader that has nothing."""
        shown = self.messages[-limit:] if limit else []
        payload: Map = {
            "mode": "reset", "epoch": "e", "version": self.version,
            "session": dict(self.session),
            "messages": [self.entry(one, new=True, sync=self.version) for one in shown],
            "has_more": len(shown) < len(self.messages),
        }  # fmt: skip
        return ["sync", 1, payload]

    def catchup(self, since: int) -> Frame:
        """The sync for a reader that stands at a version."""
        payload: Map = {
            "mode": "catchup", "from": since, "epoch": "e", "version": self.version, "durable": 1,
            "session": dict(self.session),
            "messages": [
                self.entry(one, new=True, sync=self.version)
                for one in self.messages
                if one["revision"] > since
            ],
        }  # fmt: skip
        return ["sync", 1, payload]

    def replay(self, since: int) -> Frame:
        """The same, with the text that was appended, and its end, instead of the parts that grew."""
        frame = self.catchup(since)
        past: dict[int, Map] = {one["sequence"]: one for one in json.loads(self._past[since])}
        payload = frame[2]
        payload["mode"] = "replay"
        for entry in payload["messages"]:
            old_parts: list[Map] = past.get(entry["sequence"], {}).get("parts", [])
            parts = entry["parts"]
            grown: list[tuple[Map, str]] = [
                (part, str(old["text"]))
                for part, old in zip(parts, old_parts, strict=False)
                if old["state"] == "streaming" and str(part["text"]).startswith(str(old["text"]))
            ]
            appends = [[part["sequence"], str(part["text"])[len(old) :]] for part, old in grown]
            if appends:
                entry["parts"] = [part for part in parts if all(part is not other for other, _ in grown)]
                entry["appends"] = [one for one in appends if one[1]]
                entry["ended"] = [part["sequence"] for part, _ in grown if part["state"] == "done"]
        return frame

    def page(self, before: Value, limit: int) -> Map:
        """The answer of ``messages``."""
        below = [one for one in self.messages if before is None or one["sequence"] < before]
        items = below[-limit:]
        page: Map = {
            "items": json.loads(json.dumps(items)), "total": self.session["message_count"],
            "turns": [], "epoch": "e", "version": self.version, "include_internal": False,
            "has_more": len(items) < len(below),
        }  # fmt: skip
        page |= {"start_sequence": items[0]["sequence"]} if items else {}
        return page | ({} if before is None else {"before_sequence": before})

    def step(self) -> Frame:
        """Let something happen, and return its frame."""
        self._past[self.version] = json.dumps(self.messages)
        self.version += 1
        kind = self._chance.choice(
            ["delta"] * 5 + ["message", "message", "part", "end", "drop", "clear", "skip"]
        )
        live = [one for one in self.messages if one["parts"]]
        if kind == "skip" or (not live and kind != "message"):
            return ["skip", 1, self.version - 1, self.version]
        if kind == "message":
            return self._created()
        if kind == "clear":
            return self._cleared()
        message = self._chance.choice(live)
        message["revision"] = self.version
        parts = message["parts"]
        part = self._chance.choice(parts)
        if kind == "delta" and part["state"] == "streaming":
            part["text"] = f"{part['text']}{self.version} "
            before, message["updated_at"] = message["updated_at"], self.version
            if message["sequence"] == self.session["message_count"] and part is parts[-1]:
                return [1, self.version, self.version - before, f"{self.version} "]
            return [
                "d",
                1,
                self.version,
                self.version,
                message["sequence"],
                part["sequence"],
                f"{self.version} ",
            ]
        changed = [part]
        part["state"] = "done"
        if kind == "part":
            changed += [self.part(len(parts) + 1)]
            parts += changed
        elif kind == "drop":
            del parts[-1]
            changed = [one for one in changed if one in parts]
        return ["change", 1, self.version, False, {"messages": [self.entry(message, changed=changed)]}]

    def _created(self) -> Frame:
        sequence = self.session["message_count"] + 1
        message = self.message(sequence)
        self.messages.append(message)
        self.session |= {"message_count": sequence, "revision": self.version}
        content: Map = {"messages": [self.entry(message, new=True)], "session": dict(self.session)}
        return ["change", 1, self.version, True, content]

    def _cleared(self) -> Frame:
        self.messages.clear()
        self.session |= {
            "first_sequence": self.session["message_count"] + 1,
            "revision": self.version,
        }
        return ["change", 1, self.version, True, {"session": dict(self.session)}]

    def message(self, sequence: int) -> Map:
        """A message as it begins."""
        return {
            "message_id": f"m{sequence}", "session_id": "s", "sequence": sequence, "revision": self.version,
            "role": "agent", "visibility": "visible", "created_at": 0, "updated_at": 0, "state": "streaming",
            "parts": [self.part(1)],
        }  # fmt: skip

    @staticmethod
    def part(sequence: int) -> Map:
        """A part as it begins."""
        return {
            "type": "text",
            "part_id": f"p{sequence}",
            "sequence": sequence,
            "text": "",
            "state": "streaming",
        }

    @staticmethod
    def entry(
        message: Map, *, new: bool = False, sync: int | None = None, changed: list[Map] | None = None
    ) -> Map:
        """What a change, or a sync of a version, says of a message."""
        parts = message["parts"]
        shown = parts if new else changed or []
        own = message if new else {key: message[key] for key in ("sequence", "updated_at")}
        entry = dict(own) | {"part_count": len(parts), "parts": [dict(part) for part in shown]}
        if sync is None or message["revision"] == sync:
            entry.pop("revision", None)
        return entry


def misfit(chance: random.Random, author: Author) -> Frame:
    """A frame in its place that cannot fit, from a server that is broken."""
    author.step()
    count = author.session["message_count"]
    sequence = count + chance.choice([0, 1])
    entry: Map = {
        "message_id": chance.choice(["other", f"m{sequence}"]),
        "sequence": sequence,
        "updated_at": 0,
    }
    part = author.part(3)
    whole = author.entry(author.message(count + 1), new=True) | {"appends": [[1, "x"]]}
    grown: Map = {"sequence": count, "updated_at": 0, "part_count": 1}
    sync: Map = {
        "mode": "replay",
        "epoch": "e",
        "from": author.version - 1,
        "version": author.version,
        "durable": 1,
    }
    frames: list[Frame] = [
        ["d", 1, author.version, 0, sequence, chance.choice([1, 99]), "x"],
        [1, author.version, 0, "x"],
        ["change", 1, author.version, False, {"messages": [entry | {"part_count": 99}]}],
        ["change", 1, author.version, False, {"messages": [entry | {"part_count": 0}]}],
        ["change", 1, author.version, False, {"messages": [entry | {"part_count": 2, "parts": [part]}]}],
        ["change", 1, author.version, False, {"messages": [grown | {"appends": [[1, "x"]]}]}],
        ["change", 1, author.version, False, {"messages": [grown | {"ended": [1]}]}],
        ["sync", 1, sync | {"messages": [whole]}],
        ["sync", 1, sync | {"messages": [grown | {"ended": [chance.choice([1, 2])]}]}],
    ]
    return chance.choice(frames)
