/** Inline tokens as elements. No string of HTML is ever made: what is not known here is text. */
import type { Token, Tokens } from "marked";
import { Fragment, type ReactNode } from "react";
import { linkAddress } from "./addresses.js";
import { decoded } from "./entities.js";
import styles from "./markdown.module.css";
import { RemoteImage } from "./remote_image.js";

const OPENING = /^<(sub|sup|kbd|mark)>$/i;
const FORMATTING = { sub: "sub", sup: "sup", kbd: "kbd", mark: "mark" } as const;

/** Draw inline tokens in order. */
export function inline(tokens: readonly Token[]): ReactNode[] {
  const drawn: ReactNode[] = [];
  for (let at = 0; at < tokens.length; at += 1) {
    const token = tokens[at] as Token;
    const name = token.type === "html" ? OPENING.exec(token.raw)?.[1]?.toLowerCase() : undefined;
    const closing = name ? tokens.findIndex((other, index) => index > at && closes(other, name)) : -1;
    if (name && closing > 0) {
      const Formatting = FORMATTING[name as keyof typeof FORMATTING];
      drawn.push(<Formatting key={at}>{inline(tokens.slice(at + 1, closing))}</Formatting>);
      at = closing;
    } else {
      drawn.push(<Fragment key={at}>{one(token)}</Fragment>);
    }
  }
  return drawn;
}

const closes = (token: Token, name: string): boolean =>
  token.type === "html" && token.raw.toLowerCase() === `</${name}>`;

function one(token: Token): ReactNode {
  switch (token.type) {
    case "text":
      return token.tokens ? inline(token.tokens) : decoded(token.text);
    case "escape":
      return token.text;
    case "strong":
      return <strong>{inline(token.tokens ?? [])}</strong>;
    case "em":
      return <em>{inline(token.tokens ?? [])}</em>;
    case "del":
      return <del>{inline(token.tokens ?? [])}</del>;
    case "codespan":
      return <code className={styles.codespan}>{token.text}</code>;
    case "br":
      return <br />;
    case "link":
      return link(token as Tokens.Link);
    case "image": {
      const { href, text, title } = token as Tokens.Image;
      return <RemoteImage address={decoded(href)} alt={decoded(text)} title={title ?? undefined} />;
    }
    case "html":
      return /^<br/i.test(token.raw) ? <br /> : token.raw;
    default:
      return token.raw;
  }
}

/** A link that opens beside the page, which learns nothing of it; without a good address only its text. */
function link({ href, title, tokens }: Tokens.Link): ReactNode {
  const address = linkAddress(decoded(href));
  const text = inline(tokens);
  return address === undefined ? (
    <span>{text}</span>
  ) : (
    <a
      href={address}
      title={title ? decoded(title) : undefined}
      target="_blank"
      rel="noopener noreferrer nofollow"
    >
      {text}
    </a>
  );
}
