"""The engines' twins: each algorithm as its paper has it, in plain Python."""
