"""The functions that Spark calls on Arrow batches: windows of devices, a task's share of the fleet's, and their sum."""
