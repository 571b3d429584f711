"""Windows as SPL's windowing library defines them: kinds, policies, triggers, events, partitions, operators.

`sg.WindowSpec` says what a window is, `sg.WindowOperator` runs one and tells a handler its events, `sg.operators` are
operators over them. docs/reference/kinds-played.md has every combination with its events.
"""
