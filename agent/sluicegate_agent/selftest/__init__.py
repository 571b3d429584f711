"""What `sluicegate self-test` tries on a machine: windows against their definition, kills, a chunk there and back."""
