"""Laws of what is shipped: a wheel has the chat page if it was built, and works without it."""

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.repository.test_files import ROOT, repository_files

PAGE = "clients/web/midstream/web/page"
BUILT = {"midstream/web/page/index.html", "midstream/web/page/assets/index-1.js"}
ASK = """
import sys
sys.path.insert(0, sys.argv[1])
import midstream.web as web, midstream.server.connections.page_files as files
assert web.__file__.startswith(sys.argv[1]), web.__file__
print(web.page_folder() is not None, *sorted(files.read_files(web.page_folder() or web.unbuilt_folder())))
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Give a copy of what the repository has, without what was built in it."""
    folder = tmp_path / "clone"
    for path in repository_files():
        copy = folder / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    assert not (folder / PAGE).exists()
    return folder


def build_page(clone: Path) -> None:
    """Put what a build of the page would."""
    (clone / PAGE / "assets").mkdir(parents=True)
    (clone / PAGE / "index.html").write_text("built")
    (clone / PAGE / "assets" / "index-1.js").write_text("built")


def build(source: Path, target: str) -> Path:
    """Build a wheel or an sdist, and give its file."""
    out = source.parent / f"{target}-of-{source.name}"
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(out)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (made,) = out.iterdir()
    return made


def says(wheel: Path, installed: Path) -> list[str]:
    """Unpack a wheel as pip does, and ask the package in it for its page."""
    with ZipFile(wheel) as archive:
        archive.extractall(installed)  # noqa: S202 - built just now from this clone
    command = [sys.executable, "-c", ASK, str(installed)]
    done = subprocess.run(command, cwd=installed, check=True, capture_output=True, text=True)
    return done.stdout.split()


def test_a_wheel_has_the_page_that_was_built_though_git_ignores_it(clone: Path, tmp_path: Path) -> None:
    """Whether it is built from a clone or from an sdist; and nothing of what the page is made of."""
    build_page(clone)
    sdist = build(clone, "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    for number, source in enumerate((clone, unpacked)):
        wheel = build(source, "wheel")
        with ZipFile(wheel) as archive:
            names = {name for name in archive.namelist() if name.startswith("midstream/web/")}
        assert names >= BUILT
        assert not [name for name in names if name.endswith((".ts", ".tsx")) or "node_modules" in name]
        assert says(wheel, tmp_path / f"installed-{number}") == ["True", "assets/index-1.js", "index.html"]
    assert not (unpacked / "clients" / "web" / "src").exists()


def test_a_wheel_without_a_page_works_and_says_how_to_get_it(clone: Path, tmp_path: Path) -> None:
    """Nobody needs Node to install midstream."""
    assert says(build(clone, "wheel"), tmp_path / "installed") == ["False", "index.html"]
