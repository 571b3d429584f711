"""The tables of the cloud: a bucket's fields as the contract orders them, and the rows built on them."""

from __future__ import annotations

#: The fields of a bucket (docs/reference/format.md), in order, with their SQL types; 8 bytes each.
BUCKET_FIELDS = {
    "first": "bigint",
    "n": "bigint",
    "t_first": "bigint",
    "t_last": "bigint",
    "total": "double",
    "pre_low": "double",
    "pre_high": "double",
    "low": "double",
    "low_t_first": "bigint",
    "low_t_last": "bigint",
    "low_o_first": "bigint",
    "low_o_last": "bigint",
    "high": "double",
    "high_t_first": "bigint",
    "high_t_last": "bigint",
    "high_o_first": "bigint",
    "high_o_last": "bigint",
    "x_first": "double",
    "x_last": "double",
    "gap": "bigint",
    "flags": "bigint",
    "m2": "double",
    "low_n": "bigint",
    "high_n": "bigint",
    "low_pre": "double",
    "low_suf": "double",
    "high_pre": "double",
    "high_suf": "double",
    "log_total": "double",
    "log_pre_low": "double",
    "log_pre_high": "double",
    "doubt": "bigint",
}

#: What frames add to a bucket's fields: between which values Σ (x − mean)² and Σ ln x lie, also where a bucket of
#: format 1 does not say (NaN: there is no geometric mean).
KNOWN_TO_LIE = ("m2_low", "m2_high", "log_low", "log_high")

#: The extremes that are there whichever readings in doubt are repeats; ∓∞ where none is certain.
SURE = ("sure_low", "sure_high")

#: What becomes of a document, and which fates somebody should look into.
USED, COPY, REFUSED, CONFLICT, OVERLAP = "used", "copy", "refused", "conflict", "overlap"
#: In a table's ledger: its buckets are no longer kept (`table.horizon`).
RETIRED = "retired"
PROBLEMS = (REFUSED, CONFLICT, OVERLAP)

#: Whose bucket it is. `key`: of the place it was taken at, null where the document does not say.
OWNER = {"device": "string", "stream": "string", "incarnation": "string", "key": "string", "center": "double"}


def ddl(*fields: dict[str, str]) -> str:
    """The SQL schema of several groups of fields."""
    return ", ".join(f"`{name}` {kind}" for group in fields for name, kind in group.items())


#: One row a bucket, or (n = 0) a hole in a stream's ordinals: what `read_buckets` gives.
BUCKETS = ddl(OWNER, BUCKET_FIELDS, {"chunk": "string"})
