"""A client as the configuration asks for it: session, credentials, TLS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import paho.mqtt.client as paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from sluicegate_agent.config import Config, MqttConfig, broker
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.lean import load_tls
from sluicegate_agent.link.client import Client
from sluicegate_agent.passwords import password

if TYPE_CHECKING:
    import ssl


def client_of(config: Config) -> Client:
    """A client that is not connected yet. Raises EnvironmentRefused for a secret or a certificate that is not there."""
    mqtt = config.mqtt
    session: dict[str, Any] = {} if mqtt.version == 5 else {"clean_session": False}
    protocol = paho.MQTTv5 if mqtt.version == 5 else paho.MQTTv311
    client = Client(config.limits.payload, client_id=client_id(config), protocol=protocol, **session)
    client.suppress_exceptions = False
    if mqtt.username is not None:
        client.username_pw_set(mqtt.username, password("mqtt", mqtt.password_file, mqtt.password_env))
    if mqtt.uses_tls:
        client.tls_set_context(_tls(mqtt))
    start: dict[str, Any] = {"clean_start": False, "properties": _session(mqtt)} if mqtt.version == 5 else {}
    client.connect_async(mqtt.host, mqtt.actual_port, keepalive=round(mqtt.keepalive.seconds), **start)
    return client


def client_id(config: Config) -> str:
    """The name under which the broker keeps the session."""
    return config.mqtt.client_id or broker.client_of(config.device.id)


def _session(mqtt: MqttConfig) -> Properties:
    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    properties.SessionExpiryInterval = round(mqtt.session_expiry.seconds)
    properties.ReceiveMaximum = mqtt.receive_maximum
    return properties


def subscription(mqtt: MqttConfig) -> SubscribeOptions | int:
    """QoS 1; with MQTT 5 a retained message comes with a new subscription only, not at every reconnect."""
    return SubscribeOptions(qos=1, retainHandling=1) if mqtt.version == 5 else 1


def _tls(mqtt: MqttConfig) -> ssl.SSLContext:
    load_tls()
    import ssl

    try:
        context = ssl.create_default_context(cafile=str(mqtt.tls.ca_file) if mqtt.tls.ca_file else None)
        if mqtt.tls.cert_file:
            context.load_cert_chain(mqtt.tls.cert_file, mqtt.tls.key_file)
        return context
    except (OSError, ssl.SSLError) as error:
        raise EnvironmentRefused(f"mqtt.tls: the certificate files cannot be used: {error}") from None
