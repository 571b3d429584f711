from typing import final

from sluicegate.engines.paged.pages import Paged

@final
class KvsLogMta(Paged): ...
