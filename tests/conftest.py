"""No test fails because the machine is busy, or by luck: examples have no deadline, and are the same in every run.

A Spark that a test starts, or a command that it runs, begins as small_spark.py says.

Time is measured in bench/. SLUICEGATE_EXAMPLES=new tries others in each run; what it finds belongs into a test.
"""

import os

from hypothesis import HealthCheck, settings
from small_spark import JAVA

# Making examples slowly is no fault of the test; a list in a test replaces this one, so those name `too_slow` too.
settings.register_profile("untimed", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", settings.get_profile("untimed"), derandomize=True, database=None)
os.environ["SPARK_SUBMIT_OPTS"] = os.environ["SPARK_LAUNCHER_OPTS"] = JAVA
settings.load_profile("untimed" if os.environ.get("SLUICEGATE_EXAMPLES") == "new" else "same")
