from typing import final

from sluicegate.engines.queued import Queued

@final
class Ioa(Queued): ...
