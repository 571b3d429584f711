"""The papers' experiments on every engine, each a command that prints a table, the paper's figure beside ours."""
