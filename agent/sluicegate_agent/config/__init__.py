"""The agent's configuration: `load(path)` gives a frozen, wholly checked `Config`, or raises `ConfigError`."""

from sluicegate_agent.config.aggregates import FORMS as AGGREGATES
from sluicegate_agent.config.broker import MqttConfig
from sluicegate_agent.config.errors import ConfigError, Problem
from sluicegate_agent.config.load import build, load
from sluicegate_agent.config.model import Config, PolicyConfig, WindowConfig
from sluicegate_agent.config.sources import SourceConfig
from sluicegate_agent.config.units import Duration, Size

__all__ = [
    "AGGREGATES",
    "Config",
    "ConfigError",
    "Duration",
    "MqttConfig",
    "PolicyConfig",
    "Problem",
    "Size",
    "SourceConfig",
    "WindowConfig",
    "build",
    "load",
]
