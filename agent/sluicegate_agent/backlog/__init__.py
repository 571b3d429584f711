"""The rows that wait for the cloud: what is known of them in memory, how they are stored, how they are made coarser."""
