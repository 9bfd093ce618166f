// @vitest-environment happy-dom
/** Nothing that a model writes becomes more than text and harmless elements. */
import { cleanup, render } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { Markdown } from "../../../src/markdown/markdown.js";
import { HOSTILE } from "./hostile.js";

afterEach(cleanup);

const ELEMENTS = new Set(
  (
    "a blockquote br button code del div em figcaption figure h3 h4 h5 h6 hr img kbd li mark ol p path pre rect " +
    "section span strong sub sup svg table tbody td th thead tr ul line circle polyline"
  ).split(" "),
);
const ATTRIBUTES = new Set(
  (
    "alt aria-hidden aria-label aria-pressed class data-caret data-done dir href loading referrerpolicy rel role " +
    "src start style tabindex target title type"
  ).split(" "),
);

/** What is in a page that this page never draws. */
function foreign(root: Element): string[] {
  const found: string[] = [];
  for (const element of root.querySelectorAll("*")) {
    const name = element.localName;
    if (element.closest("svg")?.getAttribute("class")?.includes("lucide")) {
      continue; // an icon of the page's own
    }
    if (!ELEMENTS.has(name) || name === "svg") {
      found.push(`<${name}>`);
    }
    for (const attribute of element.attributes) {
      if (!ATTRIBUTES.has(attribute.name)) {
        found.push(`${name} ${attribute.name}`);
      }
    }
    const href = element.getAttribute("href");
    if (href !== null && !/^(?:https?|mailto):/.test(href)) {
      found.push(`href ${href}`);
    }
    if (name === "a" && (element.getAttribute("rel") ?? "") !== "noopener noreferrer nofollow") {
      found.push("a link that tells where it was");
    }
    const src = element.getAttribute("src");
    if (src !== null && !src.startsWith("data:image/png")) {
      found.push(`src ${src}`);
    }
    const style = element.getAttribute("style");
    if (style && !/^text-align: (?:left|right|center);$/.test(style)) {
      found.push(`style ${style}`);
    }
  }
  return found;
}

test.each(HOSTILE)("%j is text", (source) => {
  const { container, rerender } = render(<Markdown text={source} streaming={false} />);
  expect(foreign(container)).toEqual([]);
  for (let end = 1; end <= source.length; end += 3) {
    rerender(<Markdown text={source.slice(0, end)} streaming={true} />);
    expect(foreign(container)).toEqual([]);
  }
});

test("a picture from elsewhere is loaded only when a person asks for it", () => {
  const { container, getByRole } = render(
    <Markdown text="![A chart](https://img.example/x.png)" streaming={false} />,
  );
  expect(container.querySelector("img")).toBeNull();
  const button = getByRole("button");
  expect(button.textContent).toContain("A chart");
  expect(button.textContent).toContain("img.example");
});

test("a picture that the answer itself holds is drawn", () => {
  const { container } = render(
    <Markdown text="![dot](data:image/png;base64,iVBORw0KGgo=)" streaming={false} />,
  );
  expect(container.querySelector("img")?.getAttribute("alt")).toBe("dot");
});
