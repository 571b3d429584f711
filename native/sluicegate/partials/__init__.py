"""A partial's layout, its operators, and how a reading is lifted into one."""
