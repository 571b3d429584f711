"""A window of readings: configured, fed, asked, stored, and shared by several questions."""
