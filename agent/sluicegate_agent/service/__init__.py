"""The agent as a service: what its supervisor is told."""
