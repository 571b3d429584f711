"""No test fails because the machine is busy: examples have no deadline (time is measured in bench/)."""

from hypothesis import settings

settings.register_profile("untimed", settings.default, deadline=None)
settings.load_profile("untimed")
