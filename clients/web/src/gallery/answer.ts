/** An answer that has everything that Markdown has. */
export const ANSWER = `# How a replica catches up

A client keeps a **replica** of each session: what it shows is never *torn*, and after an absence it asks
only for what it missed. The [protocol](https://example.com/protocol) calls this the \`merge law\`, and
H<sub>2</sub>O has nothing to do with it.

## What travels

1. The client says how far it has come, by its **cursor**.
2. The server answers with one of three modes:
   - *replay*: every frame that was missed;
   - *catch-up*: the messages as they are now;
   - *reset*: everything, because the cursor is of no use.
3. From then on it is live.

- [x] frames are numbered
- [ ] nobody reads them for pleasure

> I have the log up to line 214.
>
> And the keeper read them what came after it, no more and no less.

### In numbers

| mode | bytes | when | median |
|:-----|------:|:-----|------:|
| replay | 1,204 | up to 1,000 frames behind | 12 ms |
| catch-up | 18,400 | the log was cut | 31 ms |
| reset | 96,012 | another \`epoch\` | 88 ms |

\`\`\`python
async def follow(session: Session, *, since: int = 0) -> None:
    """Print what arrives, from a version on."""
    async for frame in session.frames(since=since):
        match frame.kind:
            case "delta":
                print(frame.text, end="", flush=True)  # no newline: it goes on
            case _:
                raise ValueError(f"{frame.kind!r} is not known")
\`\`\`

\`\`\`ts
const answer = await client.open("s1").then((session) => session.prompt("Hello", { delivery: "auto" }));
\`\`\`

---

#### Small print

A picture: ![A diagram of the modes](https://img.example/modes.png)

Math such as $a_1 \\cdot b_2$ and \\(x^2 + y^2\\) is left as text. ~~Nothing else is.~~
`;

export const RIGHT_TO_LEFT = `## שלום עולם

זה טקסט **מודגש** עם \`code\` ורשימה:

1. ראשון
2. שני

> ציטוט קצר`;
