import asyncio, json, sys, uuid, msgpack, websockets

async def main(url, session_id, text):
    messages, pieces, session, answered = {}, {}, {}, False
    async with websockets.connect(url, subprotocols=["midstream.v1.msgpack"], max_size=None) as socket:
        send = lambda *frame: socket.send(msgpack.packb(frame))
        await send("hello", 1, None, {"name": "thirty lines"})
        await send("call", 1, "subscribe", {"session_id": session_id, "limit": 200})
        await send("call", 2, "prompt", {"session_id": session_id, "message_id": str(uuid.uuid4()),
                                         "parts": [{"type": "text", "text": text}]})
        async for data in socket:
            tag, *frame = msgpack.unpackb(data)
            if tag == "chunk":
                pieces[frame[0]] = pieces.get(frame[0], b"") + frame[2]
                tag, *frame = msgpack.unpackb(pieces.pop(frame[0])) if frame[1] else ["a piece"]
            if isinstance(tag, int): tag, frame = "d", [tag, *frame[:2], session["message_count"], 0, frame[2]]
            if tag == "d":  # its part is 0 in a short delta, which is for the last one
                message, part = messages[frame[3]], messages[frame[3]]["parts"][frame[4] - 1]
                part["input_text" if part["type"] == "tool" else "text"] += frame[5]
                message.update(revision=frame[1], updated_at=message["created_at" if frame[4] else "updated_at"] + frame[2])
            if tag in ("change", "sync", "result"):
                content = frame[3] if tag == "change" else frame[1].get("sync", frame[1])
                for entry in content.get("messages", []):
                    message = messages.setdefault(entry["sequence"], {"parts": []})
                    for part in entry.pop("parts", []): message["parts"][part["sequence"] - 1:part["sequence"]] = [part]
                    del message["parts"][entry.pop("part_count"):]
                    message.update({"revision": content.get("version", frame[1]), **entry})
                session, answered = content.get("session", session), answered or frame[:1] == [2] and tag == "result"
            if answered and not (session.get("running_turn_id") or session.get("queue")): break
    print(*(json.dumps(messages[number], sort_keys=True) for number in sorted(messages)), sep="\n")

asyncio.run(main(*sys.argv[1:]))
