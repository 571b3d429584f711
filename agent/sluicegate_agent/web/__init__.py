"""The agent's listener, where one is configured: metrics, health, answers and a page, for reading only."""
