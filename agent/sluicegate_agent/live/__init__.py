"""A live view of an agent in a terminal: reads its listener, changes nothing."""
