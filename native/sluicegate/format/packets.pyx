"""Messages of MQTT out of a buffer: as many as lie whole in it, at once.

Its definition is tests/native/format/packets_twin.py.
"""
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.string cimport memcmp

cdef object _new = tuple.__new__
cdef Py_ssize_t _BEYOND = 1LL << 62


cdef struct Head:
    Py_ssize_t topic  # bytes of the topic, which begins at 2
    Py_ssize_t payload  # where that begins
    int packet_id


cdef Py_ssize_t number_at(const unsigned char* data, Py_ssize_t at, Py_ssize_t end, Py_ssize_t* value) noexcept:
    """Where a variable byte integer ends; beyond all bounds where these bytes have none."""
    cdef int place
    value[0] = 0
    for place in range(4):
        if at + place >= end:
            break
        value[0] |= <Py_ssize_t> (data[at + place] & 127) << 7 * place
        if data[at + place] < 128:
            return at + place + 1
    return _BEYOND


cdef bint read_head(
    Head* head, const unsigned char* packet, Py_ssize_t size, int qos, bint version_5, Py_ssize_t length
) noexcept:
    """Whether the head is whole and keeps to the protocol."""
    cdef Py_ssize_t at, properties, end = min(size, length)
    if size < 2 or qos > 2:
        return False
    head.topic = packet[0] << 8 | packet[1]
    at = 2 + head.topic
    head.packet_id = packet[at] << 8 | packet[at + 1] if qos and at + 2 <= end else 0
    at += 2 if qos else 0
    if version_5:
        at = number_at(packet, at, end, &properties)
        at = at if at > end else at + properties
    head.payload = at
    return at <= end and (head.packet_id or not qos)


cdef tuple fields(
    const unsigned char* packet, Py_ssize_t size, int command, bint version_5, Py_ssize_t length, topic, Head* head
):
    """The parts of a message; `topic`: where it is known. None where `read_head` says no."""
    if not read_head(head, packet, size, command >> 1 & 3, version_5, length):
        return None
    if topic is None:
        topic = PyUnicode_DecodeUTF8(<const char*> packet + 2, head.topic, b"replace")
    payload = PyBytes_FromStringAndSize(<const char*> packet + head.payload, size - head.payload)
    whole = length - head.payload if length > size else 0
    return topic, payload, head.packet_id, command >> 1 & 3, whole, command & 8 != 0, command & 1 != 0


def publish_of(int command, packet, bint version_5, Py_ssize_t length):
    """Topic, payload, packet id, QoS, whole size where it was cut, DUP and RETAIN of a PUBLISH after its fixed header.

    It may be cut short of its `length`. None where it breaks the protocol, or its head is not whole.
    """
    cdef const unsigned char[::1] view = packet
    cdef Head head
    return fields(&view[0], len(view), command, version_5, length, None, &head) if len(view) else None


def publishes(bytes data, Py_ssize_t at, bint version_5, Py_ssize_t longest, Py_ssize_t most, Py_ssize_t room, kind):
    """The messages that lie whole in `data` from a place on, where they end, and whether the last packet was none.

    Each is a `kind` of `publish_of`'s parts. They end at the first packet that is no PUBLISH, not whole or longer than
    `longest`; after `most` messages, or as their payloads are at least `room` bytes.
    """
    cdef const unsigned char* bytes_of = data
    cdef Py_ssize_t begin, length, end = len(data), known = 0, name = 0
    cdef Head head
    cdef list found = []
    topic = None
    while at + 2 <= end and bytes_of[at] & 0xF0 == 0x30 and len(found) < most and room > 0:
        begin = number_at(bytes_of, at + 1, end, &length)
        if begin > end or length > longest or length > end - begin:
            break
        if topic is not None and not (length >= 2 + name and memcmp(bytes_of + begin, bytes_of + known, 2 + name) == 0):
            topic = None
        parts = fields(bytes_of + begin, length, bytes_of[at], version_5, length, topic, &head)
        at = begin + length
        if parts is None:
            return found, at, True
        topic, known, name = parts[0], begin, head.topic
        room -= length - head.payload
        found.append(_new(kind, parts))
    return found, at, False
