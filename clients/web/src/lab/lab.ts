/**
 * The link lab: a page whose link can be broken on purpose, and a second reader whose link stays whole.
 *
 * The second reader, the control, is what makes the figures honest: what it got while the page was away is
 * what the page missed. It is a client of its own, without a store.
 */
import { Client, type ClientOptions, type Codec, type Environment, type Session } from "midstream-client";
import { identity } from "../app/identity.js";
import {
  begin,
  caughtUp,
  type Fault,
  type Incident,
  type Incidents,
  missed,
  received,
  returned,
  synced,
  verified,
} from "./incidents.js";
import { LabLink, type LinkFaults, NO_FAULTS } from "./link.js";
import { observedCodec } from "./observed_codec.js";

/** What there is to see of the lab; the same object until something changes. */
export interface LabView {
  readonly faults: LinkFaults;
  readonly incidents: Incidents;
  /** The version that the page shows, and what the control shows; undefined before the first sync. */
  readonly pageVersion: number | undefined;
  readonly controlVersion: number | undefined;
}

const NOTHING: LabView = {
  faults: NO_FAULTS,
  incidents: [],
  pageVersion: undefined,
  controlVersion: undefined,
};

export class Lab {
  readonly #link: LabLink;
  readonly #codec: Codec;
  readonly #control: Client;
  readonly #environment: Environment;
  readonly #listeners = new Set<() => void>();
  #view = NOTHING;
  #page: Session | undefined;
  #other: Session | undefined;
  /** The version that the control showed when the page came back. */
  #goal = 0;
  #leave: () => void = () => undefined;
  #ignoreOther: () => void = () => undefined;

  private constructor(url: string, environment: Environment, codec: Codec) {
    this.#environment = environment;
    this.#codec = codec;
    this.#link = new LabLink(environment);
    this.#link.onReceived = (bytes) => this.#tell(received(this.#view.incidents, bytes));
    const whole = new LabLink(environment);
    whole.onReceived = (bytes) => this.#tell(missed(this.#view.incidents, bytes));
    this.#control = new Client(url, { environment: whole.environment(), token: () => identity().token });
  }

  /** Make a lab for the server at `url`. @throws MidstreamError `unsupported`: no msgpack here. */
  static async open(url: string, environment: Environment): Promise<Lab> {
    const made: Lab[] = [];
    const codec = await observedCodec((mode) => {
      for (const lab of made) {
        lab.#tell(synced(lab.#view.incidents, mode));
      }
    });
    const lab = new Lab(url, environment, codec);
    made.push(lab);
    return lab;
  }

  /** What the page's client is made with, so that its link is the lab's. */
  get clientOptions(): Pick<ClientOptions, "environment" | "encoding"> {
    return { environment: this.#link.environment(), encoding: this.#codec };
  }

  get view(): LabView {
    return this.#view;
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Watch over this session of the page; the returned function ends that. */
  follow(page: Session): () => void {
    this.#leave();
    this.#page = page;
    const ignore = page.subscribe(() => this.#look());
    this.#leave = () => {
      ignore();
      this.#ignoreOther();
      this.#other?.close();
      this.#page = this.#other = undefined;
      this.#leave = () => undefined;
    };
    this.#look();
    return this.#leave;
  }

  /** Cut the link, or make it whole again. */
  cut(isCut: boolean): void {
    this.#break("cut", { isCut }, isCut);
  }

  /** Let nothing pass while sockets stay open, or let it pass again. */
  freeze(isFrozen: boolean): void {
    this.#break("frozen", { isFrozen }, isFrozen);
  }

  /** Make each message late by so many ms, in each direction. */
  delay(delayMs: number): void {
    this.#link.set({ delayMs });
    this.#tell(this.#view.incidents);
  }

  /** Lose the connection once. */
  drop(): void {
    this.#begin("dropped");
    this.#link.drop();
    this.#return();
  }

  /** Say that the server is being killed: what follows is its doing. */
  restarting(): void {
    this.#begin("restarted");
  }

  /** End the control; the page's client is the page's. */
  close(): void {
    this.#leave();
    this.#control.close();
  }

  #break(fault: Fault, faults: Partial<LinkFaults>, isBroken: boolean): void {
    if (isBroken) {
      this.#begin(fault);
      this.#link.set(faults);
    } else {
      const { isCut, isFrozen } = { ...this.#link.faults, ...faults };
      if (!isCut && !isFrozen) {
        this.#return();
      }
      this.#link.set(faults);
    }
    this.#look();
  }

  #begin(fault: Fault): void {
    this.#tell(begin(this.#view.incidents, fault, this.#environment.wallMs()));
  }

  #return(): void {
    this.#goal = this.#other?.version ?? 0;
    this.#tell(returned(this.#view.incidents));
    this.#look();
  }

  /** Look where the page and the control are now, and what follows from it. */
  #look(): void {
    const page = this.#page;
    const [newest] = this.#view.incidents;
    if (!page) {
      return;
    }
    if (!this.#other && page.cursor) {
      this.#other = this.#control.open(page.sessionId); // a new chat is there only when the page has made it
      this.#ignoreOther = this.#other.subscribe(() => this.#look());
    }
    const isWhole = !this.#link.faults.isCut && !this.#link.faults.isFrozen;
    const isLost = page.state === "offline" || page.state === "connecting";
    if (isLost && isWhole && page.cursor) {
      if (newest?.stage !== "away" && newest?.stage !== "returning") {
        this.#begin("lost");
      }
      if (this.#view.incidents[0]?.stage === "away") {
        this.#return();
      }
    } else if (newest?.stage === "returning" && page.state === "live" && page.version >= this.#goal) {
      this.#tell(caughtUp(this.#view.incidents, this.#environment.wallMs()));
      this.#verify(page, newest);
    }
    this.#tell(this.#view.incidents);
  }

  #verify(page: Session, incident: Incident): void {
    page.verify().then(
      ({ isEqual }) => this.#tell(verified(this.#view.incidents, incident.id, isEqual)),
      () => undefined, // the link was lost again: the next incident is verified in its place
    );
  }

  #tell(incidents: Incidents): void {
    const view: LabView = {
      faults: this.#link.faults,
      incidents,
      pageVersion: this.#page?.cursor && this.#page.version,
      controlVersion: this.#other?.cursor && this.#other.version,
    };
    const isSame = (Object.keys(view) as (keyof LabView)[]).every((name) => view[name] === this.#view[name]);
    if (!isSame) {
      this.#view = view;
      for (const listener of [...this.#listeners]) {
        listener();
      }
    }
  }
}
