"""The pages, the dashboard and the alerts for who runs a server name what there is, and nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from midstream.server.metrics import METRICS, PROCESS

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations"
SERIES = {name: metric for metric in METRICS for name in metric.series}
NAME = re.compile(r"\b(?:midstream|process|python)_[a-z_]+\b")
LABELS = re.compile(r"\bby \(([^)]*)\)|\{\{ ?(?:\$labels\.)?(\w+) ?\}\}")
FOREIGN = {"instance", "le", "job"}
"""Labels that Prometheus adds."""


def expressions() -> list[tuple[str, str]]:
    """Return every expression of the dashboard and of the alerts, with where it stands."""
    return [
        *((panel["title"], target["expr"]) for panel in dashboard()["panels"] for target in panel["targets"]),
        *((rule["alert"], rule["expr"]) for rule in rules()),
    ]


def dashboard() -> dict[str, Any]:
    """Return Grafana's file."""
    found: dict[str, Any] = json.loads((OPERATIONS / "grafana.json").read_text())
    return found


def rules() -> list[dict[str, Any]]:
    """Return the alert rules."""
    found = yaml.safe_load((OPERATIONS / "alerts.yml").read_text())
    return [rule for group in found["groups"] for rule in group["rules"]]


def test_names_and_units_are_those_of_prometheus() -> None:
    """Base units at the end of the name, one name for one thing, and a text for each."""
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    for metric in METRICS:
        assert re.fullmatch(r"midstream(_[a-z]+)+", metric.name)
        assert not metric.name.endswith(("_total", "_count", "_sum", "_bucket", "_ms", "_kb"))
        assert metric.help.endswith(".")
        if metric.kind == "histogram":
            assert metric.name.endswith(("_seconds", "_writes"))


def test_the_page_lists_every_metric_with_its_kind_labels_and_meaning() -> None:
    """One that is added, renamed or given another label is changed in the page too."""
    rows = [line for line in (OPERATIONS / "metrics.md").read_text().splitlines() if line.startswith("| `")]
    assert rows == [
        f"| `{metric.name if metric.kind == 'histogram' else metric.series[0]}` | {metric.kind} "
        f"| {', '.join(f'`{label}`' for label in metric.labels)} | {metric.help} |"
        for metric in METRICS
    ]


def test_every_expression_names_metrics_that_there_are() -> None:
    """And no other: a panel of a metric that was renamed stays empty, and an alert silent."""
    found = expressions()
    assert found
    for where, expression in found:
        names = NAME.findall(expression)
        assert names or "up{" in expression, where
        for name in names:
            assert name in SERIES or name in PROCESS, f"{where} asks for {name}"


def test_every_expression_groups_by_labels_that_its_metric_has() -> None:
    """A label that there is not makes one series of all."""
    for where, expression in expressions():
        known = set[str](FOREIGN)
        for name in NAME.findall(expression):
            known |= set(SERIES[name].labels) if name in SERIES else {"generation"}
        for group, _ in LABELS.findall(expression):
            assert {label.strip() for label in group.split(",")} <= known, where


def test_every_metric_is_in_the_dashboard() -> None:
    """What is counted can be seen."""
    shown = {SERIES[name].name for _, text in expressions() for name in NAME.findall(text) if name in SERIES}
    assert {metric.name for metric in METRICS} == shown


def test_panels_do_not_lie_on_each_other() -> None:
    """Each has an id and a place of its own."""
    panels = dashboard()["panels"]
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]
    assert len(set(places)) == len(panels) == len({panel["id"] for panel in panels})


def test_each_alert_has_a_page_that_says_what_to_do_and_each_page_an_alert() -> None:
    """What it means, what users see, how to look, what to do."""
    pages = {page.stem: page.read_text() for page in (OPERATIONS / "runbook").glob("*.md")}
    assert pages.keys() == {rule["alert"] for rule in rules()}
    for rule in rules():
        assert rule["annotations"]["runbook"] == f"runbook/{rule['alert']}.md"
        page = pages[rule["alert"]]
        assert page.startswith(f"# {rule['alert']}\n")
        for title in ("What users see", "How to look", "What to do"):
            assert f"\n## {title}\n" in page
        assert len(page.splitlines()) < 40


def test_pages_name_metrics_and_events_that_there_are() -> None:
    """Who is woken at night greps for what is written there."""
    server = Path(__file__).parents[2]
    logged = "".join(
        path.read_text()
        for folder in ("server", "agents", "worker")
        for path in (server / folder).rglob("*.py")
    )
    known = {*SERIES, *(metric.name for metric in METRICS), *PROCESS}
    for page in (OPERATIONS / "runbook").glob("*.md"):
        for word in re.findall(r"`([a-z]+(?:_[a-z]+)+)(?:\{[^`]*\})?`", page.read_text()):
            assert word in known or word in logged, f"{page.name} names {word}"
