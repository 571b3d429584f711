"""What topics, keys, streams and plug-ins are called: filters with named levels, templates, full names."""
