"""An Airflow DAG: each night what is new comes into the table, a report is drawn, and the table is proved.

A merge that failed is tried again, which is safe. A proof is not: a window that is not what its documents say fails the
task, and Airflow's own notices are the alert.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

SLUICEGATE, SOURCE, TABLE = "/opt/sluicegate-cloud/bin/sluicegate", "/srv/sluicegate/buckets", "/srv/sluicegate/fleet"

with DAG(
    "sluicegate_merge",
    schedule="30 2 * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,  # one run covers all nights before it
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=10), "execution_timeout": timedelta(hours=6)},
) as dag:
    merge = BashOperator(
        task_id="merge", bash_command=f"{SLUICEGATE} cloud merge {SOURCE} --table {TABLE} --window 24h --slide 1h"
    )
    report = BashOperator(
        task_id="report", bash_command=f"{SLUICEGATE} cloud report --table {TABLE} --out /srv/sluicegate/report.html"
    )
    reconcile = BashOperator(task_id="reconcile", bash_command=f"{SLUICEGATE} cloud reconcile {TABLE}", retries=0)
    merge >> [report, reconcile]
