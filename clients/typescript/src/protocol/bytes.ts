/** What UTF-8 makes of a text, without TextEncoder, which not every engine has. */

/** Return how many bytes the UTF-8 of a text has, where each half of a code point counts as two. */
export function utf8Length(text: string): number {
  let length = text.length;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code >= 0x80) {
      length += code < 0x800 || (code >= 0xd800 && code < 0xe000) ? 1 : 2;
    }
  }
  return length;
}

/** Whether a text has no lone half of a code point. */
export const isUnicode = (text: string): boolean => !/[\ud800-\udfff]/u.test(text);
