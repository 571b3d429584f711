"""How many epochs all sources together may keep beyond those that each keeps anyway."""


class Allowance:
    """One for each message on its way; `left` is how many more there may be."""

    def __init__(self, left: int) -> None:
        self.left = left
