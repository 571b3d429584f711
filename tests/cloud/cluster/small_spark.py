"""What every Spark of the tests is started with: it lives for minutes, over tables of a few thousand rows."""

from __future__ import annotations

#: One compiler that does not take pains, a collector without threads of its own, and Spark's own classes not verified
#: (a fifth of a start). tests/conftest.py has each Spark started so, those of commands too.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
#: Two partitions, plans made once.
SMALL = {
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
}
