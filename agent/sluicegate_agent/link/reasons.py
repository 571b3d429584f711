"""Why a broker could not be reached, in a sentence that says what to do."""

from __future__ import annotations

import socket
import ssl


def reason_of(error: OSError | ValueError) -> str:
    """What went wrong while connecting, and the setting to look at."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message}); name its authority in mqtt.tls.ca_file"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed ({error.reason or error}); does this port speak TLS?"
    if isinstance(error, socket.gaierror):
        return "its name cannot be resolved; check mqtt.host"
    if isinstance(error, ConnectionRefusedError):
        return "nobody listens there (connection refused); is the broker running, are mqtt.host and mqtt.port right?"
    return str(error) or type(error).__name__


def hint_of(reason: str) -> str:
    """What to do about a broker's refusal, to be put behind it; empty where nothing is known."""
    lowered = reason.lower()
    if "user name" in lowered or "authori" in lowered:
        return "; check mqtt.username and the password"
    return ' (try mqtt.version = "3.1.1")' if "protocol" in lowered else ""
