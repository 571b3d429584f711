"""The agent's durable state: `State` for the one agent that runs, `read_status` for whoever wants to look."""

from sluicegate_agent.state.schema import NewerStore
from sluicegate_agent.state.state import State
from sluicegate_agent.state.status import read_status
from sluicegate_agent.state.store import StoreDamaged

__all__ = ["NewerStore", "State", "StoreDamaged", "read_status"]
