"""Windows by key: one definition, a window for each of many keys, without a Python object for each."""
