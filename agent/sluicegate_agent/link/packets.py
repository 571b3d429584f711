"""What a broker may send us, and how long it may be: everything else ends the connection before it is read."""

from __future__ import annotations

CONNACK, PUBLISH, PUBACK, PUBREL, SUBACK, UNSUBACK = 0x20, 0x30, 0x40, 0x60, 0x90, 0xB0
PINGRESP, DISCONNECT = 0xD0, 0xE0
NAMES = {
    0x00: "reserved", 0x10: "CONNECT", CONNACK: "CONNACK", PUBLISH: "PUBLISH", PUBACK: "PUBACK", 0x50: "PUBREC",
    PUBREL: "PUBREL", 0x70: "PUBCOMP", 0x80: "SUBSCRIBE", SUBACK: "SUBACK", 0xA0: "UNSUBSCRIBE", UNSUBACK: "UNSUBACK",
    0xC0: "PINGREQ", PINGRESP: "PINGRESP", DISCONNECT: "DISCONNECT", 0xF0: "AUTH",
}  # fmt: skip
#: Room for the properties of an answer of MQTT 5: a reason as text, and what a broker tells of itself.
PROPERTIES = 4096


def unexpected(
    command: int, length: int, *, version_5: bool, connected: bool, asked: int, left: int = 0, sent: int = 0
) -> str:
    """Why a packet with this first byte and length is not read; empty where it is.

    `connected`: after CONNACK; `asked`: subscriptions whose SUBACK is awaited; `left`: topics whose UNSUBACK is;
    `sent`: messages of ours whose PUBACK is. We subscribe once, so of sixteen kinds eight are left: PUBREL, though we
    ask for QoS 1, of what a session holds at QoS 2. A PUBLISH has any length: its payload is cut while it arrives.
    """
    kind = command & 0xF0
    if kind == PUBLISH:
        return "" if connected else "PUBLISH before CONNACK"
    name = NAMES[kind]
    properties = PROPERTIES if version_5 else 0
    longest = {CONNACK: 2 + properties, SUBACK: 2 + properties + asked, PINGRESP: 0, DISCONNECT: 1 + properties}
    longest[PUBREL] = 3 + properties
    longest |= {UNSUBACK: 2 + properties + left} if left else {}
    longest |= {PUBACK: 3 + properties} if sent else {}
    if kind not in longest or (kind == DISCONNECT and not version_5):
        return f"a packet of type {name}, which a broker does not send us"
    if (kind != CONNACK and not connected) or (kind == SUBACK and not asked):
        return f"{name} where none was expected"
    if kind == CONNACK and connected:
        return "a second CONNACK"
    if length > longest[kind]:
        return f"{name} of {length} bytes; at most {longest[kind]} are expected"
    return "" if command & 0x0F == (2 if kind == PUBREL else 0) else f"{name} with reserved bits"
