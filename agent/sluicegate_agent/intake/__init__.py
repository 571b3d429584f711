"""Messages that came one after the other, taken together."""
