"""An Airflow DAG: merge the buckets every night, then draw the report; a failed night is tried again, which is safe."""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

SLUICEGATE, SOURCE, MERGED = "/opt/sluicegate-cloud/bin/sluicegate", "/srv/sluicegate/buckets", "/srv/sluicegate/merged"

with DAG(
    "sluicegate_merge",
    schedule="30 2 * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,  # one run covers all nights before it
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=10), "execution_timeout": timedelta(hours=6)},
) as dag:
    merge = BashOperator(
        task_id="merge", bash_command=f"{SLUICEGATE} cloud merge {SOURCE} --out {MERGED} --window 24h --slide 1h"
    )
    report = BashOperator(
        task_id="report", bash_command=f"{SLUICEGATE} cloud report {MERGED} --out {MERGED}/report.html"
    )
    merge >> report
