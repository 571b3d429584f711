"""What a message, a stream and an idle hour cost the agent, beside its peers."""
