"""One self-contained HTML page from what `cloud merge` wrote: no Spark, no network, nothing loaded from elsewhere."""

from sluicegate_cloud.report.page import write_report

__all__ = ["write_report"]
