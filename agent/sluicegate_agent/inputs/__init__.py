"""Inputs beside MQTT: readings by POST, files that grow, standard input; each imported where it is configured."""
