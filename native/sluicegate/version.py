"""The version, as pyproject.toml has it: known without reading the installed package's metadata."""

VERSION = "0.1.0"
