"""Batched intake: messages that arrived one after the other are decoded, looked up and folded together."""
