"""How the agent tells what it does: once a state, structured, without secrets."""
