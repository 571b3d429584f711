"""Why a broker could not be reached, or let us go, in a sentence that says what to do."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from paho.mqtt.reasoncodes import ReasonCode

from sluicegate_agent.lean import tls

if TYPE_CHECKING:
    import ssl

TAKEN_OVER = 0x8E
_OWN_NAMES = "give each agent its own device.id"
_NO_CERTIFICATE = ("CERTIFICATE_REQUIRED", "HANDSHAKE_FAILURE", "BAD_CERTIFICATE", "UNKNOWN_CA", "CERTIFICATE_UNKNOWN")


def reason_of(error: OSError | ValueError) -> str:
    """What went wrong while connecting, and the setting to look at."""
    if isinstance(error, tls().SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message}); name its authority in mqtt.tls.ca_file"
    if isinstance(error, tls().SSLError):
        return _of_tls(error)
    if isinstance(error, socket.gaierror):
        return "its name cannot be resolved; check mqtt.host"
    if isinstance(error, ConnectionRefusedError):
        return "nobody listens there (connection refused); is the broker running, are mqtt.host and mqtt.port right?"
    if isinstance(error, TimeoutError):
        return "no answer in time; are mqtt.host and mqtt.port right, does a firewall stand between?"
    if isinstance(error, ConnectionError):
        return "the connection was cut before it was made"
    return str(error) or type(error).__name__


def _of_tls(error: ssl.SSLError) -> str:
    said = error.reason or str(error)
    if "ALERT" in said and any(alert in said for alert in _NO_CERTIFICATE):
        return f"it wants a client certificate that it trusts ({said}); name one in mqtt.tls.cert_file and key_file"
    return f"TLS failed ({said}); does this port speak TLS?"


def hint_of(reason: str) -> str:
    """What to do about a broker's refusal, to be put behind it; empty where nothing is known."""
    lowered = reason.lower()
    if "user name" in lowered or "authori" in lowered:
        return "; check mqtt.username and the password"
    return ' (try mqtt.version = "3.1.1")' if "protocol" in lowered else ""


def taken_over(client_id: str) -> str:
    """What is told where the broker says that another client has our name."""
    return f"another client with the same id ({client_id}) took the session over; {_OWN_NAMES}"


def suspected(client_id: str) -> str:
    """What is put behind the reason where connection after connection ends early: MQTT 3.1.1 does not tell why."""
    return (
        f"; again and again soon after connecting: is there another client with the same id ({client_id})? {_OWN_NAMES}"
    )


def closed(stage: str, reason: ReasonCode | None, *, tls: bool, version_5: bool) -> str:
    """What is told of a connection that ended at a `stage` (link.py) without a word of why."""
    if stage == "connecting":
        hint = ' that knows MQTT 5 (else mqtt.version = "3.1.1")' if version_5 else ""
        hint += ", and does it want a client certificate (mqtt.tls.cert_file)?" if tls else "?"
        return f"closed before it answered (no CONNACK); is it an MQTT broker{hint}"
    if stage == "subscribing":
        return "closed before it granted our subscriptions; do its access rules allow them?"
    said = "" if reason is None or str(reason) == "Unspecified error" else f" ({reason})"
    return f"connection lost{said}"
