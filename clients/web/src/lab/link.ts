/** The link of the page to its server, in the hands of whoever tries it: cut, frozen, delayed. */
import type { Environment, News, Socket } from "midstream-client";
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
  readonly #watchers = new Set<(news: News) => void>();
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
    return {
      ...this.#environment,
      socket: (url, subprotocols) => this.#open(url, subprotocols),
      watch: (listener) => this.#watch(listener),
    };
  }

  /**
   * Change what is done to the link; what is not named stays as it is. That a cut link is whole again is
   * told to the client, as a browser tells by `online`.
   */
  set(faults: Partial<LinkFaults>): void {
    const wasCut = this.#faults.isCut;
    this.#faults = { ...this.#faults, ...faults };
    if (this.#faults.isCut) {
      this.drop();
    }
    for (const socket of [...this.#sockets]) {
      socket.pump();
    }
    if (wasCut && !this.#faults.isCut) {
      for (const listener of this.#watchers) {
        listener("awake");
      }
    }
  }

  /** Lose the connections of now; new ones may be made. */
  drop(): void {
    for (const socket of [...this.#sockets]) {
      socket.lose();
    }
  }

  #watch(listener: (news: News) => void): () => void {
    const ignore = this.#environment.watch?.(listener);
    this.#watchers.add(listener);
    return () => {
      this.#watchers.delete(listener);
      ignore?.();
    };
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
