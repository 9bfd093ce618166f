/** Times and sizes in words, the same all over the page. Pure. */

/** `4 s`, `2 min 5 s`, `3 h 10 min`. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const minutes = Math.floor(seconds / 60);
  if (minutes === 0) {
    return `${seconds} s`;
  }
  return minutes < 60
    ? `${minutes} min${seconds % 60 ? ` ${seconds % 60} s` : ""}`
    : `${Math.floor(minutes / 60)} h${minutes % 60 ? ` ${minutes % 60} min` : ""}`;
}

/** `512 bytes`, `783 kB`, `3.0 MB`. */
export function size(bytes: number): string {
  if (bytes < 1000) {
    return `${bytes} bytes`;
  }
  return bytes < 1_000_000 ? `${Math.round(bytes / 1000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
