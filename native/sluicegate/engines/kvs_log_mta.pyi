from typing import final

from sluicegate.engines.paged import Paged

@final
class KvsLogMta(Paged): ...
