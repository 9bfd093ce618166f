"""Two agents that come with the server: one to try it, one to replay what a provider once streamed."""

from midstream.server.agents.demo import demo_agent
from midstream.server.agents.named import AgentUnavailable, agent_named
from midstream.server.agents.replay import replay_agent

__all__ = ["AgentUnavailable", "agent_named", "demo_agent", "replay_agent"]
