"""Devices that do not speak by themselves: asked by a process of its own (Modbus TCP, OPC UA), handed on by POST."""
