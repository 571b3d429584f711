"""The A2MTA paper's experiments at its own scale: its tables, its figures, and each answer held to the exact one."""
