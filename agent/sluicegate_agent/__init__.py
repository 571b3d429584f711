"""The agent on the board: takes readings over MQTT, answers windows, keeps buckets through outages, hands them on."""
