"""A batch over a flat array: where the window begins after each reading, then its total by one kernel an operator."""
