"""What other systems are told so that they find the agent's answers by themselves."""
