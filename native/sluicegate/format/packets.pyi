from typing import TypeVar

_Kind = TypeVar("_Kind")

def publish_of(
    command: int, packet: bytes | bytearray, version_5: bool, length: int
) -> tuple[str, bytes, int, int, int, bool, bool] | None: ...
def publishes(
    data: bytes, at: int, version_5: bool, longest: int, most: int, room: int, kind: type[_Kind]
) -> tuple[list[_Kind], int, bool]: ...
