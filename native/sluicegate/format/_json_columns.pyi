from array import array

def columns_of(
    payload: bytes, most: int, time: str, scale: int, earliest: int, latest: int, keys: tuple[str, ...]
) -> tuple[array[int], list[array[float]], int, float] | None: ...
