"""An agent is found by its name, or the error says in one line what is wrong and what is expected."""

import sys
from pathlib import Path

import pytest

from midstream.server.agents.named import AgentUnavailable, agent_named

MODULE = """
async def agent(turn): ...
def plain(turn): ...
class holder:
    @staticmethod
    async def inner(turn): ...
class Callable:
    async def __call__(self, turn): ...
made = Callable()
"""


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a folder of modules that can be imported."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for name in ("agents_for_test", "raising_for_test", "needing_for_test"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    (tmp_path / "agents_for_test.py").write_text(MODULE)
    (tmp_path / "raising_for_test.py").write_text("1 / 0")
    (tmp_path / "needing_for_test.py").write_text("import a_module_that_is_not_there")
    return tmp_path


def test_agents_are_found_by_name(modules: Path) -> None:
    """The built-in ones by their own, others by module and name, with dots in either."""
    (modules / "one.chunks.txt").write_text("{}\n")
    for spec in ("demo", f"replay:{modules}", "agents_for_test:agent", "agents_for_test:holder.inner"):
        assert callable(agent_named(spec, speed=0))


@pytest.mark.usefixtures("modules")
def test_an_object_that_is_called_like_an_async_function_is_an_agent() -> None:
    """What has a model and other parts of its own is often an object; its class is none."""
    assert callable(agent_named("agents_for_test:made"))
    with pytest.raises(AgentUnavailable, match="no async function"):
        agent_named("agents_for_test:Callable")


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("", "expected `demo`"),
        ("dmeo", "expected `demo`"),
        ("replay:", "expected `demo`"),
        ("replay:missing-folder", "missing-folder is no folder"),
        ("approve.py:agent", "such as `approve:agent`"),
        ("./folder/approve.py:agent", "such as `approve:agent`"),
        ("no_such_module_here:agent", "No module named 'no_such_module_here'"),
        ("needing_for_test:agent", "No module named 'a_module_that_is_not_there'"),
        ("raising_for_test:agent", "importing raising_for_test raised ZeroDivisionError"),
        ("agents_for_test:missing", "module agents_for_test has no 'missing'"),
        ("agents_for_test:plain", "'plain' is no async function"),
    ],
)
@pytest.mark.usefixtures("modules")
def test_an_agent_that_cannot_be_used_is_refused_with_the_reason(spec: str, problem: str) -> None:
    """The text names the agent that was asked for, and what is wrong with it."""
    with pytest.raises(AgentUnavailable) as caught:
        agent_named(spec)
    assert str(caught.value).startswith(f"Agent {spec!r} cannot be used: ")
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)
