"""The tables. The JSON columns hold the facts; the other columns are an index that can be rebuilt from them."""

from typing import Any

from sqlalchemy import Column, Float, Index, Integer, LargeBinary, MetaData, PrimaryKeyConstraint, String, Table

metadata = MetaData()

meta = Table("meta", metadata, Column("key", String, primary_key=True), Column("value", String, nullable=False))


def _about_a_run() -> tuple[Column[Any], ...]:
    """The first columns of each table of runs."""
    return (
        Column("id", String, primary_key=True),
        Column("header", LargeBinary, nullable=False),  # the document without title, note, status and results
        Column("title", String, nullable=False),
        Column("note", String, nullable=False, default=""),
        Column("created_at", String, nullable=False),
        Column("status", String, nullable=False),
        Column("owner", String, nullable=False, default=""),
    )


def _its_process_and_deletion() -> tuple[Column[Any], ...]:
    """The process that measures a run, and when the run was deleted."""
    return (
        Column("host", String, nullable=False),
        Column("boot_id", String, nullable=False),
        Column("pid", Integer, nullable=False),
        Column("pid_started_s", Float, nullable=False),
        Column("deleted_at", String, nullable=True),  # a deleted run stays for a while, so that it can be restored
    )


runs = Table(
    "runs",
    metadata,
    *_about_a_run(),
    Column("op", String, nullable=False),
    Column("device", String, nullable=False),
    Column("device_uuid", String, nullable=False),
    Column("cases", Integer, nullable=False),
    *_its_process_and_deletion(),
    Column("spent_s", Float, nullable=False, server_default="0"),  # how long it used the device, all its parts together
    Index("runs_by_time", "created_at"),
    Index("runs_by_status", "status"),
)

results = Table(
    "results",
    metadata,
    Column("run_id", String, nullable=False),
    Column("case_key", String, nullable=False),
    Column("position", Integer, nullable=False),
    Column("revision", Integer, nullable=False),  # grows with each write in its run: "what is new since …"
    Column("op", String, nullable=False),
    Column("variant", String, nullable=False),
    Column("dtype", String, nullable=False),
    Column("device_uuid", String, nullable=False),
    Column("stage", String, nullable=False),  # empty for a timing
    Column("body", LargeBinary, nullable=False),  # see result_encoding.py
    PrimaryKeyConstraint("run_id", "case_key"),
    Index("results_by_run", "run_id", "revision"),
    Index("results_by_stage", "run_id", "stage"),  # for counts in lists, which then do not read the bodies' pages
    Index("results_by_op", "op", "variant", "dtype", "device_uuid"),
)

code_references = Table(
    "code_references",  # artifacts that the results of a run name, whose contents are files (see code_folder.py)
    metadata,
    Column("run_id", String, nullable=False),
    Column("digest", String, nullable=False),
    PrimaryKeyConstraint("run_id", "digest"),
)

selftests = Table(
    "selftests",
    metadata,
    Column("id", String, primary_key=True),
    Column("device_uuid", String, nullable=False),
    Column("created_at", String, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index("selftests_by_device", "device_uuid", "created_at"),
)

inspections = Table(
    "inspections",
    metadata,
    Column("device_uuid", String, nullable=False),
    Column("case_key", String, nullable=False),
    Column("created_at", String, nullable=False),
    Column("body", LargeBinary, nullable=False),
    PrimaryKeyConstraint("device_uuid", "case_key"),
    Index("inspections_by_time", "created_at"),
)

roofs = Table(
    "roofs",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("device_uuid", String, nullable=False),
    Column("name", String, nullable=False),
    Column("precision", String, nullable=False),  # empty for a bandwidth
    Column("measured_at", String, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index("roofs_by_device", "device_uuid", "name", "precision", "id"),
)

tunings = Table(
    "tunings",
    metadata,
    Column("device_uuid", String, nullable=False),
    Column("op", String, nullable=False),
    Column("variant", String, nullable=False),
    Column("problem_key", String, nullable=False),  # see core.tuning.tuning_key
    Column("created_at", String, nullable=False),
    Column("run_id", String, nullable=False),
    Column("body", LargeBinary, nullable=False),
    PrimaryKeyConstraint("device_uuid", "op", "variant", "problem_key"),
)

times = Table(
    "times",  # of correct results only; a separate table, because a row of `results` is long
    metadata,
    Column("run_id", String, nullable=False),
    Column("case_key", String, nullable=False),
    Column("device_uuid", String, nullable=False),
    Column("op", String, nullable=False),
    Column("variant", String, nullable=False),
    Column("problem", LargeBinary, nullable=False),
    Column("setup", String, nullable=False),
    Column("digest", String, nullable=False),
    Column("configuration", String, nullable=False, server_default=""),
    Column("cold_s", Float),
    Column("cold_low_s", Float),
    Column("cold_high_s", Float),
    Column("warm_s", Float),
    Column("warm_low_s", Float),
    Column("warm_high_s", Float),
    PrimaryKeyConstraint("run_id", "case_key"),
    Index("times_by_case", "device_uuid", "case_key"),
    Index("times_by_op", "device_uuid", "op"),
)

workload_runs = Table(
    "workload_runs",
    metadata,
    *_about_a_run(),
    Column("workload", String, nullable=False),
    Column("device", String, nullable=False),
    Column("cases", Integer, nullable=False),
    *_its_process_and_deletion(),
    Index("workload_runs_by_time", "created_at"),
    Index("workload_runs_by_status", "status"),
)

workload_results = Table(
    "workload_results",
    metadata,
    Column("run_id", String, nullable=False),
    Column("case_key", String, nullable=False),
    Column("position", Integer, nullable=False),
    Column("stage", String, nullable=False),  # empty for a measurement
    Column("body", LargeBinary, nullable=False),  # compressed JSON
    PrimaryKeyConstraint("run_id", "case_key"),
)
