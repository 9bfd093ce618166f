// Frames to all subscribers of a room with the npm package `ws`, under node.
//
// As its README broadcasts: one `send` of the same Buffer to each client. There is no documented way to frame once
// for all (its undocumented `Sender.frame`, written to each socket, took about a tenth less CPU).
//
// `ws` joins nothing itself, and writes each frame with a writev of its own. Frames of one turn are joined by
// `cork` and `uncork`, which node documents for every stream, on the socket that the request came by, which node
// documents too. With ten frames a turn that took a fifth of the CPU.

import { WebSocketServer } from "ws";
import { obey, roomOf } from "./commands.mjs";

const rooms = new Map();
const server = new WebSocketServer({ host: "127.0.0.1", port: 0, backlog: 4096, perMessageDeflate: false });

/** Return the sockets of a room's subscribers by client. */
function members(room) {
  if (!rooms.has(room)) rooms.set(room, new Map());
  return rooms.get(room);
}

server.on("connection", (client, request) => {
  const room = members(roomOf(request.url));
  room.set(client, request.socket);
  client.on("close", () => room.delete(client));
  client.on("error", () => client.terminate());
});

server.on("listening", () =>
  obey(server.address().port, {
    publish(room, payload) {
      const data = Buffer.from(payload);
      for (const client of members(room).keys()) client.send(data);
    },
    together(room, write) {
      for (const socket of members(room).values()) socket.cork();
      write();
      for (const socket of members(room).values()) socket.uncork();
    },
    buffered() {
      for (const client of server.clients) if (client.bufferedAmount > 0) return true;
      return false;
    },
  }),
);
