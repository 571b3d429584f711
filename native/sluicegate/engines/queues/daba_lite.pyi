from typing import final

from sluicegate.engines.queues.lite import Lite

@final
class DabaLite(Lite): ...
