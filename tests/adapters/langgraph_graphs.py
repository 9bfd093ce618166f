"""LangGraph's graphs as people build them, behind the few types that the tests need."""

# langgraph brings types, but leaves many of them open:
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Protocol, cast

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, Send, interrupt

from tests.adapters.langchain_models import ScriptedModel


class Graph(Protocol):
    """What streams."""

    def astream(self, input: object, config: object = None, **how: object) -> AsyncIterator[object]:
        """Run, and give what the modes say."""
        ...

    def astream_events(self, input: object, **how: object) -> AsyncIterator[object]:
        """Run, and give every event."""
        ...


def graph_of(model: ScriptedModel, *tools: BaseTool) -> Graph:
    """Return an agent: the model, its tools, the model again."""

    async def think(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    def further(state: MessagesState) -> str:
        answer = state["messages"][-1]
        return "tools" if isinstance(answer, AIMessage) and answer.tool_calls else END

    graph = StateGraph(MessagesState)
    graph.add_node("think", think)
    graph.add_node("tools", ToolNode([*tools], handle_tool_errors=True))
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", further, ["tools", END])
    graph.add_edge("tools", "think")
    return cast("Graph", graph.compile())


def asking_graph() -> Graph:
    """Return a graph that stops for a person, who is asked with the number of messages."""

    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [HumanMessage(str(interrupt({"allow": len(state["messages"])})))]}

    graph = StateGraph(MessagesState)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    return cast("Graph", graph.compile(checkpointer=InMemorySaver()))


def approving_graph(model: ScriptedModel, deleted: list[str]) -> Graph:
    """Return an agent that deletes what a person allows: each call runs, and waits, in a task of its own."""

    @tool
    async def delete(path: str) -> str:
        """Delete a file."""
        if not interrupt({"delete": path}):
            return "A person said no."
        deleted.append(path)
        return f"{path} is deleted."

    async def think(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    def further(state: MessagesState) -> list[Send]:
        answer = state["messages"][-1]
        return [Send("tools", [one]) for one in answer.tool_calls] if isinstance(answer, AIMessage) else []

    graph = StateGraph(MessagesState)
    graph.add_node("think", think)
    graph.add_node("tools", ToolNode([delete]))
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", further, ["tools"])
    graph.add_edge("tools", "think")
    return cast("Graph", graph.compile(checkpointer=InMemorySaver()))


def answered(answers: dict[str, bool]) -> object:
    """Return what a graph is resumed with."""
    resumed: Command[str] = Command(resume=answers)
    return resumed
