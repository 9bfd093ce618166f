/** What one reader reads: a bounded buffer of its own, so that none delays another. */

/**
 * What one reader reads with `for await`: everything since it was made, in order.
 *
 * At most `limit` items wait. What becomes of a slower reader is said by `overflow`, which makes the one item
 * that then stands for all that waited. Leaving the loop ends it.
 */
export class Stream<T> implements AsyncIterableIterator<T, undefined> {
  readonly #limit: number;
  readonly #overflow: () => T;
  readonly #onEnd: () => void;
  #items: T[] = [];
  #waiting: (() => void)[] = [];
  #ended: { readonly error?: unknown } | undefined;

  constructor(limit: number, overflow: () => T, onEnd: () => void) {
    this.#limit = limit;
    this.#overflow = overflow;
    this.#onEnd = onEnd;
  }

  push(item: T): void {
    if (this.#items.length < this.#limit) {
      this.#items.push(item);
    } else {
      this.#items = [this.#overflow()];
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
    this.#onEnd();
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
