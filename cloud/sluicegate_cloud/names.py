"""The aggregates that windows are answered for, in the order of the tables. Imports nothing."""

#: What every window tells where nothing is asked for; the count is always among the columns.
AGGREGATES = ("count", "sum", "mean", "min", "max")
#: Those that are answered where they are asked for: most need more of each bucket.
MORE = ("variance", "std", "range", "geometric_mean", "min_count", "max_count")
ALL = (*AGGREGATES, *MORE)
#: The columns of an aggregate's name: the value, between what it certainly lies, and whether nothing is uncertain.
ENDS = ("", "_low", "_high", "_exact")
#: Of a window of several devices: how many were heard of before it, and never again; null in a device's own.
SILENT = "devices_silent"
#: What the rows of all devices for one window, or one span, have in common.
OF_A_WINDOW = ("stream", "window_start", "window_end")
