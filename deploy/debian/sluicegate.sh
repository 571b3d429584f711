#!/bin/sh
# The command of the environment that the package made.
exec /opt/sluicegate/venv/bin/sluicegate "$@"
