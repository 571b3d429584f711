//! A rumqttd on a port of this machine, for MQTT 3.1.1; its sessions end with it.

use rumqttd::{Broker, Config};
use serde_json::json;

fn main() {
    let port = std::env::args().nth(1).unwrap();
    let server = json!({
        "name": "mqtt",
        "listen": format!("127.0.0.1:{}", port),
        "next_connection_delay_ms": 1,
        "connections": {
            "connection_timeout_ms": 60000,
            "max_payload_size": 1048576,
            "max_inflight_count": 100,
            "dynamic_filters": true
        }
    });
    let told = json!({
        "id": 0,
        "router": {
            "id": 0,
            "max_connections": 1000,
            "max_outgoing_packet_count": 200,
            "max_segment_size": 104857600,
            "max_segment_count": 10
        },
        "v4": { "1": server }
    });
    let config: Config = serde_json::from_value(told).unwrap();
    Broker::new(config).start().unwrap();
}
