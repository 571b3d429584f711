"""Python values to Fleece and back: None, bool, int, float, str, bytes, list, dict.

What JSON can say goes through JSON, which is quickest; bytes have no JSON and go value by value.
Nothing that is read here stays a pointer: all is copied before the caller lets go.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from sluicegate.cblite.errors import InvalidArgument
from sluicegate.cblite.loading import Library

UNDEFINED, NULL, BOOLEAN, NUMBER, STRING, DATA, ARRAY, DICT = range(-1, 7)
#: Nesting that is read or written; a document that is deeper is refused rather than the stack exhausted.
DEEPEST = 64

#: The library's parser rounds integers beyond 64 bits to floats: long ones are checked and written one by one.
_LONG_NUMBER = re.compile(r"\d{19}")
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), check_circular=True).encode


def sliced(ffi: Any, data: bytes | bytearray | memoryview) -> tuple[Any, int]:
    """A slice over `data`, without a copy: keep `data` until the call returns."""
    return ffi.from_buffer(data), len(data)


def text_of(ffi: Any, held: Any) -> str:
    """A copy of a slice as text."""
    return bytes(ffi.buffer(held.buf, held.size)).decode() if held.size else ""


def bytes_of(ffi: Any, held: Any) -> bytes:
    """A copy of a slice."""
    return bytes(ffi.buffer(held.buf, held.size)) if held.size else b""


def taken(library: Library, result: Any) -> bytes | None:
    """A copy of a result that is ours to release; None for none."""
    ffi, lib = library[:2]
    if result.buf == ffi.NULL:
        return None
    try:
        return bytes(ffi.buffer(result.buf, result.size))
    finally:
        lib._FLBuf_Release(result.buf)


def json_of(values: Mapping[str, Any]) -> bytes | None:
    """The values as JSON; None where they have to go value by value: bytes, the largest integers.

    Raises InvalidArgument.
    """
    try:
        text = _encode(values)
        return None if _LONG_NUMBER.search(text) else text.encode()
    except (TypeError, RecursionError):
        return None
    except ValueError as error:
        raise InvalidArgument(f"a document's values: {error}; expected finite numbers and no cycles") from error


def fill(library: Library, target: Any, values: Mapping[str, Any], deep: int = 0) -> None:
    """Set every key of a mutable dictionary. Raises InvalidArgument for what Fleece cannot hold."""
    ffi, lib = library[:2]
    for key, value in values.items():
        if not isinstance(key, str):
            raise InvalidArgument(f"the key {key!r}: expected a text")
        name = key.encode()
        write(library, lib.FLMutableDict_Set(target, sliced(ffi, name)), value, deep)


def write(library: Library, slot: Any, value: Any, deep: int = 0) -> None:
    """Put one value into a slot of a mutable collection. Raises InvalidArgument."""
    ffi, lib = library[:2]
    if value is None:
        lib.FLSlot_SetNull(slot)
    elif value is True or value is False:
        lib.FLSlot_SetBool(slot, value)
    elif isinstance(value, int):
        _write_int(lib, slot, value)
    elif isinstance(value, float):
        if not isfinite(value):
            raise InvalidArgument(f"{value!r}: expected a finite number")
        lib.FLSlot_SetDouble(slot, value)
    elif isinstance(value, str):
        lib.FLSlot_SetString(slot, sliced(ffi, value.encode()))
    elif isinstance(value, bytes | bytearray | memoryview):
        lib.FLSlot_SetData(slot, sliced(ffi, value))
    else:
        _write_collection(library, slot, value, deep + 1)


def _write_int(lib: Any, slot: Any, value: int) -> None:
    if -(2**63) <= value < 2**63:
        lib.FLSlot_SetInt(slot, value)
    elif 0 <= value < 2**64:
        lib.FLSlot_SetUInt(slot, value)
    else:
        raise InvalidArgument(f"{value}: expected an integer of at most 64 bits")


def _write_collection(library: Library, slot: Any, value: Any, deep: int) -> None:
    ffi, lib = library[:2]
    if deep > DEEPEST:
        raise InvalidArgument(f"a value is nested more than {DEEPEST} deep; expected a flatter document")
    if isinstance(value, Mapping):
        made = lib.FLMutableDict_New()
        put: Callable[[], None] = lambda: fill(library, made, value, deep)  # noqa: E731
    elif isinstance(value, list | tuple):
        made = lib.FLMutableArray_New()
        put = lambda: _append(library, made, value, deep)  # noqa: E731
    else:
        raise InvalidArgument(f"{value!r}: expected None, bool, int, float, str, bytes, list or dict")
    try:
        put()
        lib.FLSlot_SetValue(slot, ffi.cast("void *", made))
    finally:
        lib.FLValue_Release(ffi.cast("void *", made))


def _append(library: Library, target: Any, values: list[Any] | tuple[Any, ...], deep: int) -> None:
    for value in values:
        write(library, library.lib.FLMutableArray_Append(target), value, deep)


def mutable(library: Library, values: Mapping[str, Any]) -> Any:
    """A new mutable dictionary with these values: release it with `released`. Raises InvalidArgument."""
    lib = library.lib
    made = lib.FLMutableDict_New()
    try:
        fill(library, made, values)
    except BaseException:
        released(library, made)
        raise
    return made


def released(library: Library, made: Any) -> None:
    """Let a mutable collection go."""
    library.lib.FLValue_Release(library.ffi.cast("void *", made))


def read(library: Library, value: Any, deep: int = 0) -> Any:
    """A value as plain Python, copied. An undefined one (a missing column) is None, like null."""
    ffi, lib = library[:2]
    kind = lib.FLValue_GetType(value)
    if kind == STRING:
        return text_of(ffi, lib.FLValue_AsString(value))
    if kind == NUMBER:
        return _number(lib, value)
    if kind == DATA:
        return bytes_of(ffi, lib.FLValue_AsData(value))
    if kind == DICT:
        return read_dict(library, lib.FLValue_AsDict(value), _deeper(deep))
    if kind == ARRAY:
        array, below = lib.FLValue_AsArray(value), _deeper(deep)
        return [read(library, lib.FLArray_Get(array, i), below) for i in range(lib.FLArray_Count(array))]
    return bool(lib.FLValue_AsBool(value)) if kind == BOOLEAN else None


def read_dict(library: Library, source: Any, deep: int = 0) -> dict[str, Any]:
    """A dictionary as plain Python, copied."""
    ffi, lib = library[:2]
    found: dict[str, Any] = {}
    if not lib.FLDict_Count(source):
        return found
    at = ffi.new("FLDictIterator *")
    lib.FLDictIterator_Begin(source, at)
    while True:
        value = lib.FLDictIterator_GetValue(at)
        if value == ffi.NULL:
            return found
        found[text_of(ffi, lib.FLDictIterator_GetKeyString(at))] = read(library, value, deep)
        if not lib.FLDictIterator_Next(at):
            return found


def _number(lib: Any, value: Any) -> int | float:
    if not lib.FLValue_IsInteger(value):
        return float(lib.FLValue_AsDouble(value))
    return int(lib.FLValue_AsUnsigned(value) if lib.FLValue_IsUnsigned(value) else lib.FLValue_AsInt(value))


def _deeper(deep: int) -> int:
    if deep >= DEEPEST:
        raise InvalidArgument(f"a value is nested more than {DEEPEST} deep; read the document as JSON")
    return deep + 1
