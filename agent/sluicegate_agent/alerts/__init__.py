"""Alerts: judged with the commit that caused them, kept until somebody has taken them, told at least once."""
