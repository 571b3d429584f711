"""What topics, keys and streams are called: filters with named levels, templates, full names."""
