/** The link of the page to its server, in the hands of whoever tries it: cut, frozen, delayed. */
import type { Environment, Socket } from "midstream-client";
import { LabSocket, type SocketLink } from "./socket.js";

/** What is done to the link now. */
export interface LinkFaults {
  /** Connections are lost, and new ones find nobody. */
  readonly isCut: boolean;
  /** Sockets stay open, and nothing passes in either direction: the phone in the tunnel. */
  readonly isFrozen: boolean;
  /** By how much each message is late, in ms, in each direction. */
  readonly delayMs: number;
}

export const NO_FAULTS: LinkFaults = { isCut: false, isFrozen: false, delayMs: 0 };

export class LabLink {
  readonly #environment: Environment;
  readonly #sockets = new Set<LabSocket>();
  #faults = NO_FAULTS;
  /** Called with the bytes of each message that reached the page. */
  onReceived: (bytes: number) => void = () => undefined;

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  get faults(): LinkFaults {
    return this.#faults;
  }

  /** The environment for the client whose link this is. */
  environment(): Environment {
    return { ...this.#environment, socket: (url, subprotocols) => this.#open(url, subprotocols) };
  }

  /** Change what is done to the link; what is not named stays as it is. */
  set(faults: Partial<LinkFaults>): void {
    this.#faults = { ...this.#faults, ...faults };
    if (this.#faults.isCut) {
      this.drop();
    }
    for (const socket of [...this.#sockets]) {
      socket.pump();
    }
  }

  /** Lose the connections of now; new ones may be made. */
  drop(): void {
    for (const socket of [...this.#sockets]) {
      socket.lose();
    }
  }

  #open(url: string, subprotocols: string[]): Socket {
    const { now, later } = this.#environment;
    const link: SocketLink = {
      now,
      later,
      passage: () => this.#faults,
      received: (bytes) => this.onReceived(bytes),
      gone: (socket) => this.#sockets.delete(socket),
    };
    const real = this.#faults.isCut ? undefined : this.#environment.socket(url, subprotocols);
    const socket = new LabSocket(real, link);
    this.#sockets.add(socket);
    return socket;
  }
}
