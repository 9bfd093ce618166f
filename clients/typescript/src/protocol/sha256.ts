/**
 * SHA-256 (FIPS 180-4). The platform's own is asynchronous, and missing in React Native and on pages
 * without TLS; a replica must be digested in the middle of the stream, before the next frame comes.
 */

const isPrime = (n: number): boolean => {
  for (let by = 2; by * by <= n; by++) {
    if (n % by === 0) {
      return false;
    }
  }
  return true;
};
const fraction = (root: number): number => ((root % 1) * 2 ** 32) | 0;

// the first 32 bits of the fractions of roots of the first primes: square roots for H, cube roots for K
const primes: number[] = [];
for (let n = 2; primes.length < 64; n++) {
  if (isPrime(n)) {
    primes.push(n);
  }
}
const START = primes.slice(0, 8).map((prime) => fraction(prime ** 0.5));
const ROUNDS = primes.map((prime) => fraction(Math.cbrt(prime)));

const turned = (word: number, by: number): number => (word >>> by) | (word << (32 - by));

/** Return the SHA-256 of some bytes, as 64 hex digits. */
export function sha256(bytes: Uint8Array): string {
  const length = bytes.length;
  const padded = new Uint8Array((((length + 8) >> 6) + 1) << 6);
  padded.set(bytes);
  padded[length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(length / 2 ** 29));
  view.setUint32(padded.length - 4, length << 3);
  const state = Int32Array.from(START);
  const words = new Int32Array(64);
  for (let start = 0; start < padded.length; start += 64) {
    block(view, start, words, state);
  }
  return [...state].map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
}

function block(view: DataView, start: number, w: Int32Array, state: Int32Array): void {
  for (let i = 0; i < 64; i++) {
    if (i < 16) {
      w[i] = view.getInt32(start + i * 4);
      continue;
    }
    const a = w[i - 15] as number;
    const b = w[i - 2] as number;
    const s0 = turned(a, 7) ^ turned(a, 18) ^ (a >>> 3);
    const s1 = turned(b, 17) ^ turned(b, 19) ^ (b >>> 10);
    w[i] = (w[i - 16] as number) + s0 + (w[i - 7] as number) + s1;
  }
  let [a, b, c, d, e, f, g, h] = state as unknown as [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  for (let i = 0; i < 64; i++) {
    const s1 = turned(e, 6) ^ turned(e, 11) ^ turned(e, 25);
    const first = (h + s1 + ((e & f) ^ (~e & g)) + (ROUNDS[i] as number) + (w[i] as number)) | 0;
    const s0 = turned(a, 2) ^ turned(a, 13) ^ turned(a, 22);
    const second = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
  }
  for (const [i, word] of [a, b, c, d, e, f, g, h].entries()) {
    state[i] = ((state[i] as number) + word) | 0;
  }
}
