from typing import final

from sluicegate.engines.lite import Lite

@final
class TwoStacksLite(Lite): ...
