// @vitest-environment happy-dom
/** Files: pixels are drawn, the web is linked, everything else can at most be stored. */
import { expect, test } from "vitest";
import { fileName, isPicture, reach, storable } from "../../../src/parts/file_address.js";
import { draw, messageOf } from "./drawing.js";

const PIXEL = "data:image/png;base64,iVBORw0KGgo=";

test.each([
  ["https://a.example/x", "remote"],
  ["http://a.example/x", "remote"],
  [PIXEL, "inline"],
  ["data:text/html,<script>alert(1)</script>", "inline"],
  ["javascript:alert(1)", "none"],
  ["JaVa\nScript:alert(1)", "none"],
  ["blob:https://a.example/1", "none"],
  ["file:///etc/passwd", "none"],
  ["vbscript:x", "none"],
  ["//a.example/x", "none"],
  ["/x", "none"],
  ["", "none"],
])("%j can be reached as: %s", (url, kind) => {
  expect(reach(url).kind).toBe(kind);
});

test.each([
  [PIXEL, "image/png", true],
  ["data:image/webp;base64,AA==", "text/html", true],
  ["data:image/svg+xml,<svg onload=alert(1)>", "image/svg+xml", false],
  ["data:image/svg+xml,<svg onload=alert(1)>", "image/png", false],
  ["data:text/html,x", "image/png", false],
  ["https://a.example/x.png", "image/png", true],
  ["https://a.example/x.svg", "image/svg+xml", false],
  ["javascript:alert(1)", "image/png", false],
])("%j of the type %s is drawn as a picture: %s", (url, mediaType, drawn) => {
  expect(isPicture(url, mediaType)).toBe(drawn);
  const part = { part_id: "f", sequence: 1, type: "file", url, media_type: mediaType } as const;
  const { container } = draw(messageOf([part]));
  expect(container.querySelectorAll("img")).toHaveLength(drawn ? 1 : 0);
  for (const link of container.querySelectorAll("a")) {
    expect(link.protocol).toMatch(/^https?:$/);
  }
});

test("what is stored is bytes that no browser opens as a page", async () => {
  const page = storable("data:text/html;charset=utf-8,%3Cb%3E100%%20%E2%9C%93");
  expect(page?.type).toBe("application/octet-stream");
  expect(await page?.text()).toBe("<b>100% ✓");
  expect(await storable("data:text/plain;base64,aGVsbG8=")?.text()).toBe("hello");
  expect(storable("data:text/plain;base64,!!!")).toBeUndefined();
  expect(storable("https://a.example/")).toBeUndefined();
});

test.each([
  ["a.txt", "a.txt"],
  ["../../etc/passwd", "passwd"],
  ["C:\\x\\y.exe", "y.exe"],
  ["invoice\u202efdp.exe", "invoicefdp.exe"],
  ["a\nb\u0000.txt", "ab.txt"],
  ["", "file.png"],
])("the name %j is written %j", (name, written) => {
  expect(fileName(name, "image/png")).toBe(written);
});
