"""Laws about the files of the repository: what may stand in them, and what must stand beside it."""

import functools
import re
import shutil
import subprocess
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE_ROOTS = (
    "protocol", "agents", "adapters", "server", "clients/python", "clients/web", "worker", "conformance",
    "cli",
)  # fmt: skip
SOURCE_SUFFIXES = (".py", ".ts", ".tsx")
MOST_LINES = 400

# Written so that neither expression matches its own source.
MACHINE_PATH = re.compile(r"(?<![\w.~-])/(?:work|root|tmp|home|Users)/")
REGISTRY = re.compile(r"pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|index[-]url|deb\.debian\.org")

IGNORE = re.compile(
    r"#\s*(?:noqa(?::\s*[A-Z]+\d+(?:[,\s]+[A-Z]+\d+)*)?|(?:type|pyright):\s*ignore(?:\[[^\]]*\])?)"
)
RELATIVE_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)")


LOGGED = re.compile(r"\b_?log\.(?:debug|info|warning|error|exception)\(\s*f?[\"']([^\"']*)[\"']")


@functools.cache
def repository_files() -> tuple[Path, ...]:
    """All files that are committed, or would be by `git add --all`."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("which files belong to the repository is known to git alone, and this is not a clone")
    listing = subprocess.run(
        [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return tuple(path for name in listing.split("\0") if name and (path := ROOT / name).is_file())


def texts() -> Iterator[tuple[Path, str]]:
    """Each text file of the repository (its path from the root, its content)."""
    for path in repository_files():
        try:
            yield path.relative_to(ROOT), path.read_text("utf-8")
        except UnicodeDecodeError:
            continue


def configuration_entries() -> Iterator[tuple[str, str]]:
    """What pyproject.toml lists for a reason (the key of its list, the entry)."""
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    lists: dict[str, list[str]] = {
        "build-system.requires": configuration["build-system"]["requires"],
        "project.dependencies": configuration["project"]["dependencies"],
        "tool.ruff.lint.ignore": configuration["tool"]["ruff"]["lint"]["ignore"],
    }
    for name, requirements in configuration["project"]["optional-dependencies"].items():
        lists[f"project.optional-dependencies.{name}"] = requirements
    for name, requirements in configuration["dependency-groups"].items():
        lists[f"dependency-groups.{name}"] = requirements
    for name, ignores in configuration["tool"]["ruff"]["lint"]["per-file-ignores"].items():
        lists[f"tool.ruff.lint.per-file-ignores.{name}"] = ignores
    return ((key, entry) for key, entries in lists.items() for entry in entries)


def test_no_file_hides_the_other_package_folders() -> None:
    """A single midstream/__init__.py would end the namespace package."""
    assert all((ROOT / root / "midstream").is_dir() for root in PACKAGE_ROOTS)
    assert [path for path in repository_files() if path.parts[-2:] == ("midstream", "__init__.py")] == []


def test_each_package_ships_its_types() -> None:
    """Without py.typed, type checkers of those who use a package treat it as untyped."""
    packages = [
        path.parent for root in PACKAGE_ROOTS for path in (ROOT / root / "midstream").glob("*/__init__.py")
    ]
    assert len(packages) == len(PACKAGE_ROOTS)
    assert [str(package) for package in packages if not (package / "py.typed").is_file()] == []


def test_no_file_names_a_registry_or_a_path_of_some_machine() -> None:
    """A clone works the same wherever it stands and wherever its packages come from."""
    found = [
        f"{path}:{number}: {line.strip()}"
        for path, text in texts()
        for number, line in enumerate(text.splitlines(), start=1)
        if MACHINE_PATH.search(line) or REGISTRY.search(line)
    ]
    assert found == []


def test_a_long_source_file_says_why_near_its_top() -> None:
    """A file over 400 lines has two ideas, or one of its first twenty lines begins with `Long because`."""
    too_long = [
        str(path)
        for path, text in texts()
        if path.suffix in SOURCE_SUFFIXES
        and len(lines := text.splitlines()) > MOST_LINES
        and not any(line.strip(' #/*"').startswith("Long because") for line in lines[:20])
    ]
    assert too_long == []


def test_every_dependency_has_a_purpose_and_every_ignored_rule_a_reason() -> None:
    """In pyproject.toml the comment stands on the entry's own line."""
    lines = (ROOT / "pyproject.toml").read_text("utf-8").splitlines()
    bare = [
        f"{key}: {entry}"
        for key, entry in configuration_entries()
        if not any(re.search(rf'"{re.escape(entry)}"[],]*\s+# \S+', line) for line in lines)
    ]
    assert bare == []


def test_every_dependency_has_a_lower_bound() -> None:
    """An installer that prefers old versions must not find one that nobody tried."""
    unbound = [entry for key, entry in configuration_entries() if "ruff" not in key and ">=" not in entry]
    assert unbound == []


def test_every_ignore_in_code_has_its_reason_beside_it() -> None:
    """The reason follows the ignore, or is the comment on the line above."""
    bare: list[str] = []
    for path in repository_files():
        if path.suffix != ".py":
            continue
        with path.open("rb") as source:
            tokens = [token for token in tokenize.tokenize(source.readline) if token.type == tokenize.COMMENT]
        lines_of_comment = {token.start[0] for token in tokens if token.line.lstrip().startswith("#")}
        bare += [
            f"{path.relative_to(ROOT)}:{token.start[0]}: {token.string}"
            for token in tokens
            if IGNORE.search(token.string)
            and not re.search(r"\w", IGNORE.sub("", token.string))
            and token.start[0] - 1 not in lines_of_comment
        ]
    assert bare == []


def test_every_line_of_a_log_is_a_named_event() -> None:
    """It can be searched for by one name; what it is about stands in named fields, not in its text."""
    named = 0
    for path, text in texts():
        if path.suffix == ".py" and "midstream" in path.parts:
            for event in LOGGED.findall(text):
                assert re.fullmatch(r"[a-z]+(?:_[a-z]+)+", event), f"{path} logs {event!r}"
                named += 1
    assert named, "nothing is logged"


def test_relative_links_in_documents_lead_to_files() -> None:
    """A reader who follows a link within the repository finds something."""
    broken = [
        f"{path}: {target}"
        for path, text in texts()
        if path.suffix == ".md"
        for target in RELATIVE_LINK.findall(text)
        if not (ROOT / path.parent / target).exists()
    ]
    assert broken == []
