"""Sync targets behind one small contract, and `Sync`, which moves sealed chunks to one of them."""

from sluicegate_agent.sync.contract import Document, Outcome, Target
from sluicegate_agent.sync.directory import DirectoryTarget
from sluicegate_agent.sync.sync import Sync

__all__ = ["DirectoryTarget", "Document", "Outcome", "Sync", "Target"]
