/** What a client publishes to its readers: each has a bounded buffer of its own, and none delays another. */

/**
 * What one reader reads with `for await`: everything since it was made, in order.
 *
 * At most `limit` items wait. What becomes of a slower reader is said by `overflow`, which makes the one item
 * that then stands for all that waited; without it the oldest item is dropped. Leaving the loop ends it.
 */
export class Stream<T> implements AsyncIterableIterator<T, undefined> {
  readonly #limit: number;
  readonly #overflow: (() => T) | undefined;
  readonly #onEnd: (stream: Stream<T>) => void;
  #items: T[] = [];
  #waiting: (() => void)[] = [];
  #ended: { readonly error?: unknown } | undefined;

  constructor(
    limit: number,
    overflow: (() => T) | undefined,
    onEnd: (stream: Stream<T>) => void,
  ) {
    this.#limit = limit;
    this.#overflow = overflow;
    this.#onEnd = onEnd;
  }

  push(item: T): void {
    if (this.#items.length < this.#limit) {
      this.#items.push(item);
    } else if (this.#overflow) {
      this.#items = [this.#overflow()];
    } else {
      this.#items = [...this.#items.slice(1), item];
    }
    this.#wake();
  }

  /** End it: after what waits the reader gets the error, or the loop just ends. */
  end(error?: unknown): void {
    this.#ended ??= { error };
    this.#wake();
  }

  async next(): Promise<IteratorResult<T, undefined>> {
    while (!this.#items.length && !this.#ended) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    if (this.#items.length) {
      return { done: false, value: this.#items.shift() as T };
    }
    const error = this.#ended?.error;
    this.#ended = {};
    if (error) {
      throw error;
    }
    return { done: true, value: undefined };
  }

  /** Stop reading: what waits is dropped and nothing more is kept. */
  async return(): Promise<IteratorReturnResult<undefined>> {
    this.#onEnd(this);
    this.#items = [];
    this.end();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) {
      resolve();
    }
  }
}

/** Gives each item to all readers that there are. */
export class Fanout<T> {
  readonly #limit: number;
  readonly #readers = new Set<Stream<T>>();
  #ended: { readonly error?: unknown } | undefined;

  constructor(limit = 100) {
    this.#limit = limit;
  }

  /** Whether anybody reads. */
  get isRead(): boolean {
    return this.#readers.size > 0;
  }

  /** Return a new stream, which begins now. */
  reader(limit = this.#limit, overflow?: () => T): Stream<T> {
    const stream = new Stream(limit, overflow, (ended) => this.#readers.delete(ended));
    if (this.#ended) {
      stream.end(this.#ended.error);
    } else {
      this.#readers.add(stream);
    }
    return stream;
  }

  publish(item: T): void {
    for (const stream of this.#readers) {
      stream.push(item);
    }
  }

  /** End all streams, and those that are asked for later. */
  end(error?: unknown): void {
    this.#ended = { error };
    for (const stream of this.#readers) {
      stream.end(error);
    }
    this.#readers.clear();
  }
}
