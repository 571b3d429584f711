"""Queries in SQL++: compiled once, run with parameters, read row by row."""

TEXT = """
CBLQuery *CBLDatabase_CreateQuery(const CBLDatabase *, uint32_t language, FLString, int *position, CBLError *);
void CBLQuery_SetParameters(CBLQuery *, FLDict);
CBLResultSet *CBLQuery_Execute(CBLQuery *, CBLError *);
FLSliceResult CBLQuery_Explain(const CBLQuery *);
unsigned CBLQuery_ColumnCount(const CBLQuery *);
FLSlice CBLQuery_ColumnName(const CBLQuery *, unsigned);
bool CBLResultSet_Next(CBLResultSet *);
FLValue CBLResultSet_ValueAtIndex(const CBLResultSet *, unsigned);
"""
