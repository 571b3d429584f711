"""Kernels of the cloud's merge over whole columns: on buffers, without NumPy; the twins are in sluicegate_cloud."""
