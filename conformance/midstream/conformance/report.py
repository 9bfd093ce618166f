"""Reports of a run: a table to read, JSON, JUnit XML, and one HTML page that needs nothing beside it."""

from __future__ import annotations

import html
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from xml.etree import ElementTree as ET

from midstream.conformance.outcome import Outcome, Result

MARKS = {Outcome.PASSED: "ok", Outcome.FAILED: "FAILED", Outcome.SKIPPED: "skipped", Outcome.ERROR: "ERROR"}


@dataclass(frozen=True, kw_only=True)
class Report:
    """The results of one run, and what was tested.

    Attributes:
        kind: ``server`` or ``client``.
        subject: where the server is, or the client's command.
        software: what it says of itself, where it says it.
        seed: what the run's chances came from.
        seconds: how long the run took.
    """

    kind: str
    subject: str
    software: str
    seed: int
    seconds: float
    results: Sequence[Result]

    @property
    def counts(self) -> Counter[Outcome]:
        """How many cases ended how."""
        return Counter(result.outcome for result in self.results)

    @property
    def is_good(self) -> bool:
        """Whether no case failed, none was an error, and at least one passed."""
        return all(result.is_good for result in self.results) and bool(self.counts[Outcome.PASSED])

    def summary(self) -> str:
        """Return the run in one line."""
        counts = ", ".join(f"{self.counts[outcome]} {outcome}" for outcome in Outcome if self.counts[outcome])
        who = f"{self.kind} {self.subject} ({self.software or 'unnamed'})"
        return f"{who}: {counts or 'no case'}; seed {self.seed}, {self.seconds:.1f} s"


def line(result: Result) -> str:
    """Return a result as one line, and below it why it did not pass."""
    text = f"{MARKS[result.outcome]:8}{result.section:6}{result.id:44}{result.title}"
    if result.outcome is Outcome.SKIPPED:
        return f"{text}\n{'':14}because {result.what}"
    if not result.is_good:
        text += f"\n{'':14}{result.what}"
        text += f"\n{'':14}expected: {result.expected}" if result.expected else ""
        text += f"\n{'':14}seen:     {result.seen}" if result.seen else ""
    return text


def as_table(report: Report) -> str:
    """Return the report as lines of text, the summary last."""
    return "\n".join([*map(line, report.results), "", report.summary(), ""])


def as_json(report: Report) -> str:
    """Return the report as one JSON object; the keys are the names of `Report` and `Result`."""
    return json.dumps({**asdict(report), "results": [asdict(result) for result in report.results]}, indent=1)


def as_junit(report: Report) -> str:
    """Return the report as JUnit XML: a suite for each chapter of SPEC.md."""
    root = ET.Element("testsuites", name=f"midstream conform {report.kind}", time=f"{report.seconds:.3f}")
    for chapter in dict.fromkeys(_chapter(result) for result in report.results):
        results = [result for result in report.results if _chapter(result) == chapter]
        counts = Counter(result.outcome for result in results)
        suite = ET.SubElement(
            root,
            "testsuite",
            name=f"SPEC {chapter}",
            tests=str(len(results)),
            failures=str(counts[Outcome.FAILED]),
            errors=str(counts[Outcome.ERROR]),
            skipped=str(counts[Outcome.SKIPPED]),
            time=f"{sum(result.seconds for result in results):.3f}",
        )
        for result in results:
            case = ET.SubElement(
                suite,
                "testcase",
                classname=f"SPEC {result.section}",
                name=result.id,
                time=f"{result.seconds:.3f}",
            )
            _outcome(case, result)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _outcome(case: ET.Element, result: Result) -> None:
    tags = {Outcome.FAILED: "failure", Outcome.ERROR: "error", Outcome.SKIPPED: "skipped"}
    if result.outcome in tags:
        found = ET.SubElement(case, tags[result.outcome], message=_xml(result.what))
        if not result.is_good:
            found.text = _xml(
                f"{result.title}\nexpected: {result.expected}\nseen: {result.seen}\n" + "\n".join(result.log)
            )


def _xml(text: str) -> str:
    """Leave out what XML cannot carry."""
    return "".join(one if one in "\t\n" or one >= " " else "\N{REPLACEMENT CHARACTER}" for one in text)


STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
td, th { text-align: left; padding: .3rem .6rem; vertical-align: top }
tr { border-bottom: 1px solid #8884 } code, pre { font: 13px/1.4 ui-monospace, monospace }
pre { overflow-x: auto; white-space: pre-wrap; word-break: break-word }
.passed { color: #1a7f37 } .failed, .error { color: #cf222e; font-weight: 600 } .skipped { color: #9a6700 }
@media (prefers-color-scheme: dark) { body { background: #111; color: #ddd } }
"""


def as_html(report: Report) -> str:
    """Return the report as one page, without scripts and without anything to fetch."""
    rows: list[str] = []
    for chapter in dict.fromkeys(_chapter(result) for result in report.results):
        rows.append(f'<tr><th colspan="4">SPEC {html.escape(chapter)}</th></tr>')
        rows += [_row(result) for result in report.results if _chapter(result) == chapter]
    title = html.escape(f"midstream conform {report.kind}: {report.subject}")
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f"<style>{STYLE}</style>"
        f"<h1>{title}</h1>\n<p>{html.escape(report.summary())}</p>\n"
        "<table><tr><th>Outcome</th><th>SPEC</th><th>Case</th><th>Rule</th></tr>\n"
        + "\n".join(rows)
        + "\n</table></html>\n"
    )


def _row(result: Result) -> str:
    why = ""
    if result.outcome is Outcome.SKIPPED:
        why = f"<br>because {html.escape(result.what)}"
    elif not result.is_good:
        log = html.escape("\n".join(result.log))
        why = (
            f"<br><b>{html.escape(result.what)}</b><pre>expected: {html.escape(result.expected)}\n"
            f"seen: {html.escape(result.seen)}</pre><details><summary>What went over the wire last</summary>"
            f"<pre>{log}</pre></details>"
        )
    ids = " ".join(result.guarantees)
    return (
        f'<tr><td class="{result.outcome}">{result.outcome}</td><td>{html.escape(result.section)}</td>'
        f"<td><code>{html.escape(result.id)}</code><br><small>{ids}</small></td>"
        f"<td>{html.escape(result.title)}{why}</td></tr>"
    )


def _chapter(result: Result) -> str:
    return result.section.partition(".")[0]


FORMS: dict[str, Callable[[Report], str]] = {
    "table": as_table,
    "json": as_json,
    "junit": as_junit,
    "html": as_html,
}
"""The forms of a report, by the name that the command knows them by."""
