"""Databases: opening, transactions, maintenance."""

TEXT = """
/* Community Edition. `mmapDisabled` came with 3.2.1 and is not in 4.0; elsewhere its byte is padding. */
typedef struct { FLString directory; bool fullSync; bool mmapDisabled; } CBLDatabaseConfiguration;

CBLDatabaseConfiguration CBLDatabaseConfiguration_Default(void);
bool CBL_DatabaseExists(FLString name, FLString directory);
bool CBL_CopyDatabase(FLString from_path, FLString name, const CBLDatabaseConfiguration *, CBLError *);
bool CBL_DeleteDatabase(FLString name, FLString directory, CBLError *);
CBLDatabase *CBLDatabase_Open(FLString name, const CBLDatabaseConfiguration *, CBLError *);
bool CBLDatabase_Close(CBLDatabase *, CBLError *);
bool CBLDatabase_Delete(CBLDatabase *, CBLError *);
bool CBLDatabase_BeginTransaction(CBLDatabase *, CBLError *);
bool CBLDatabase_EndTransaction(CBLDatabase *, bool commit, CBLError *);
bool CBLDatabase_PerformMaintenance(CBLDatabase *, uint32_t kind, CBLError *);
FLStringResult CBLDatabase_Path(const CBLDatabase *);
FLArray CBLDatabase_ScopeNames(const CBLDatabase *, CBLError *);
FLArray CBLDatabase_CollectionNames(const CBLDatabase *, FLString scope, CBLError *);
CBLCollection *CBLDatabase_Collection(const CBLDatabase *, FLString name, FLString scope, CBLError *);
CBLCollection *CBLDatabase_CreateCollection(CBLDatabase *, FLString name, FLString scope, CBLError *);
bool CBLDatabase_DeleteCollection(CBLDatabase *, FLString name, FLString scope, CBLError *);
CBLCollection *CBLDatabase_DefaultCollection(const CBLDatabase *, CBLError *);
"""
