"""First-in first-out queues with an aggregate at each end: two stacks, the Okasaki aggregators and DABA."""
