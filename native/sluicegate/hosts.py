"""Whether a host is this machine, so that nothing sent to it leaves: by its address, or by the one name `localhost`."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether a host, without port or brackets, is this machine.

    A name that only looks like an address (`127.0.0.1.example.org`) is anybody's: names are never asked of a resolver,
    which could be lied to.
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback
