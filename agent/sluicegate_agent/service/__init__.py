"""The agent as a service: from its start to its end, and what its supervisor is told."""
