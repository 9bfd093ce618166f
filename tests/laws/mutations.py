"""All cases."""

from tests.laws.case import Case
from tests.laws.cases_sessions import SESSIONS
from tests.laws.cases_texts import TEXTS
from tests.laws.cases_tools import TOOLS
from tests.laws.cases_turns import TURNS

MUTATIONS: dict[str, Case] = {**TURNS, **TEXTS, **TOOLS, **SESSIONS}
