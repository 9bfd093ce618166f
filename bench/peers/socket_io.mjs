// Events to all subscribers of a room with Socket.IO, connection state recovery on, under node.
//
// WebSocket transport only, and the engine for it that it brings (`ws`). It encodes and frames an event once for
// all sockets of a room. Of several events in one turn it writes the first at once and the others when that is
// done, each by itself: it has no documented way to join them.
//
// What a raw client of it exchanges; every message is text:
//
//     server   0{"sid":"brX8sAvE9p1n4n3yAAAA","upgrades":[],"pingInterval":25000,"pingTimeout":20000,...}
//     client   40
//     server   40{"sid":"ZiXttDy5vcHDNph1AAAA","pid":"I5dz3X4jjjCXhyDMAAAB"}    the socket is in its room now
//     server   42["d","wordwordwo","Q8k0Vt5"]      an event, with the offset that recovery adds: the time in ms,
//     server   42["d","wordwordwo","Q8k0Vt5.0"]    and a count where that is the same; the payload begins at byte 8
//     server   2                                   every 25 s; the client answers within 20 s:
//     client   3

import { createServer } from "node:http";
import { Server } from "socket.io";
import { obey } from "./commands.mjs";

const http = createServer();
const io = new Server(http, {
  transports: ["websocket"],
  connectionStateRecovery: {}, // two minutes, its default
  serveClient: false,
});

io.on("connection", (socket) => socket.join(String(socket.handshake.query.room)));

http.listen({ host: "127.0.0.1", port: 0, backlog: 4096 }, () =>
  obey(http.address().port, {
    publish: (room, payload) => io.to(String(room)).emit("d", payload),
    buffered() {
      for (const { conn } of io.sockets.sockets.values())
        if (conn.writeBuffer.length > 0 || conn.transport.socket.bufferedAmount > 0) return true;
      return false;
    },
  }),
);
