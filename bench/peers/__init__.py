"""The agent beside Telegraf and eKuiper behind one real Mosquitto: what a message costs, and what is lost or twice."""
