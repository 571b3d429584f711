from typing import final

from sluicegate.engines.queued import Queued

__pyx_capi__: dict[str, object]

@final
class Daba(Queued): ...
