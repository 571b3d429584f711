"""The cloud's part: buckets of all devices → frames → windows per device and fleet-wide, tables and a report."""
