from typing import final

from sluicegate.engines.base import Engine

@final
class Fiba(Engine): ...
