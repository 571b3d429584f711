/* The C interface of Couchbase Lite, Community Edition 3.1 to 4.x: what `sluicegate.cblite` calls of it, for cffi. */

/* Fleece: slices, values, and the mutable collections a document's properties are made of. */
typedef struct { const void *buf; size_t size; } FLSlice;
typedef struct { const void *buf; size_t size; } FLSliceResult;
typedef FLSlice FLString;
typedef FLSliceResult FLStringResult;

typedef ... *FLValue;
typedef ... *FLArray;
typedef ... *FLDict;
typedef ... *FLSlot;

void _FLBuf_Release(const void *);

int FLValue_GetType(FLValue);
bool FLValue_IsInteger(FLValue);
bool FLValue_IsUnsigned(FLValue);
bool FLValue_AsBool(FLValue);
int64_t FLValue_AsInt(FLValue);
uint64_t FLValue_AsUnsigned(FLValue);
double FLValue_AsDouble(FLValue);
FLString FLValue_AsString(FLValue);
FLSlice FLValue_AsData(FLValue);
FLArray FLValue_AsArray(FLValue);
FLDict FLValue_AsDict(FLValue);
void FLValue_Release(void *);

uint32_t FLArray_Count(FLArray);
FLValue FLArray_Get(FLArray, uint32_t);

uint32_t FLDict_Count(FLDict);
FLValue FLDict_Get(FLDict, FLString);
typedef struct { void *a; uint32_t b; bool c; void *d, *e, *f, *g; int h; } FLDictIterator;
void FLDictIterator_Begin(FLDict, FLDictIterator *);
FLString FLDictIterator_GetKeyString(const FLDictIterator *);
FLValue FLDictIterator_GetValue(const FLDictIterator *);
bool FLDictIterator_Next(FLDictIterator *);

FLDict FLMutableDict_New(void);
FLSlot FLMutableDict_Set(FLDict, FLString);
FLArray FLMutableArray_New(void);
FLSlot FLMutableArray_Append(FLArray);
void FLSlot_SetNull(FLSlot);
void FLSlot_SetBool(FLSlot, bool);
void FLSlot_SetInt(FLSlot, int64_t);
void FLSlot_SetUInt(FLSlot, uint64_t);
void FLSlot_SetDouble(FLSlot, double);
void FLSlot_SetString(FLSlot, FLString);
void FLSlot_SetData(FLSlot, FLSlice);
void FLSlot_SetValue(FLSlot, void *);

/* Errors, reference counts, and the functions whose presence tells one version of the library from another. */
typedef struct { uint8_t domain; int code; unsigned internal_info; } CBLError;
FLSliceResult CBLError_Message(const CBLError *);

typedef struct CBLDatabase CBLDatabase;
typedef struct CBLCollection CBLCollection;
typedef struct CBLDocument CBLDocument;
typedef struct CBLQuery CBLQuery;
typedef struct CBLResultSet CBLResultSet;
typedef struct CBLReplicator CBLReplicator;
typedef struct CBLListenerToken CBLListenerToken;

void CBL_Release(void *);
unsigned CBL_InstanceCount(void);

/* Never called: which of them a library exports says what it is. */
void CBLDatabase_SaveDocument(void);
void CBLDocument_Timestamp(void);
void CBLCollection_FullName(void);
void CBLCollection_CreateArrayIndex(void);
void CBLDatabase_PublicUUID(void);
void CBLDatabase_ChangeEncryptionKey(void);

/* Databases: opening, transactions, maintenance. */
/* Community Edition. `mmapDisabled` came with 3.2.1 and is not in 4.0; elsewhere its byte is padding. */
typedef struct { FLString directory; bool fullSync; bool mmapDisabled; } CBLDatabaseConfiguration;

CBLDatabaseConfiguration CBLDatabaseConfiguration_Default(void);
CBLDatabase *CBLDatabase_Open(FLString name, const CBLDatabaseConfiguration *, CBLError *);
bool CBLDatabase_Close(CBLDatabase *, CBLError *);
bool CBLDatabase_Delete(CBLDatabase *, CBLError *);
bool CBLDatabase_BeginTransaction(CBLDatabase *, CBLError *);
bool CBLDatabase_EndTransaction(CBLDatabase *, bool commit, CBLError *);
bool CBLDatabase_PerformMaintenance(CBLDatabase *, uint32_t kind, CBLError *);
FLStringResult CBLDatabase_Path(const CBLDatabase *);
CBLCollection *CBLDatabase_Collection(const CBLDatabase *, FLString name, FLString scope, CBLError *);
CBLCollection *CBLDatabase_CreateCollection(CBLDatabase *, FLString name, FLString scope, CBLError *);

/* Collections: documents in and out, expiry. */
uint64_t CBLCollection_Count(const CBLCollection *);
const CBLDocument *CBLCollection_GetDocument(const CBLCollection *, FLString id, CBLError *);
bool CBLCollection_SaveDocumentWithConcurrencyControl(CBLCollection *, CBLDocument *, uint8_t control, CBLError *);
bool CBLCollection_DeleteDocumentWithConcurrencyControl(
    CBLCollection *, const CBLDocument *, uint8_t control, CBLError *);
bool CBLCollection_PurgeDocumentByID(CBLCollection *, FLString id, CBLError *);
int64_t CBLCollection_GetDocumentExpiration(CBLCollection *, FLString id, CBLError *);
bool CBLCollection_SetDocumentExpiration(CBLCollection *, FLString id, int64_t milliseconds, CBLError *);

/* Documents: properties, JSON. */
CBLDocument *CBLDocument_CreateWithID(FLString id);
FLDict CBLDocument_Properties(const CBLDocument *);
FLDict CBLDocument_MutableProperties(CBLDocument *);
bool CBLDocument_SetJSON(CBLDocument *, FLSlice json, CBLError *);

/* Queries in SQL++: compiled once, run with parameters, read row by row. */
CBLQuery *CBLDatabase_CreateQuery(const CBLDatabase *, uint32_t language, FLString, int *position, CBLError *);
void CBLQuery_SetParameters(CBLQuery *, FLDict);
CBLResultSet *CBLQuery_Execute(CBLQuery *, CBLError *);
unsigned CBLQuery_ColumnCount(const CBLQuery *);
FLSlice CBLQuery_ColumnName(const CBLQuery *, unsigned);
bool CBLResultSet_Next(CBLResultSet *);
FLValue CBLResultSet_ValueAtIndex(const CBLResultSet *, unsigned);

/* The library's own messages: log sinks from 3.2.2 on, the console's level before. */
typedef struct { uint8_t level; uint16_t domains; } CBLConsoleLogSink;
void CBLLogSinks_SetConsole(CBLConsoleLogSink);
void CBLLog_SetConsoleLevel(uint8_t);

/* Listeners: what the library calls on threads of its own. */
void CBLListener_Remove(CBLListenerToken *);

/* Replicators. */
typedef struct CBLEndpoint CBLEndpoint;
typedef struct CBLAuthenticator CBLAuthenticator;

CBLEndpoint *CBLEndpoint_CreateWithURL(FLString, CBLError *);
void CBLEndpoint_Free(CBLEndpoint *);
CBLAuthenticator *CBLAuth_CreatePassword(FLString user, FLString password);
CBLAuthenticator *CBLAuth_CreateSession(FLString session, FLString cookie);
void CBLAuth_Free(CBLAuthenticator *);

typedef struct {
    CBLCollection *collection;
    void *conflictResolver;
    void *pushFilter;
    void *pullFilter;
    FLArray channels;
    FLArray documentIDs;
} CBLReplicationCollection;

/* Here stands the layout of one major version: replicator_3.h or replicator_4.h. */

typedef struct { float complete; uint64_t documentCount; } CBLReplicatorProgress;
typedef struct { uint8_t activity; CBLReplicatorProgress progress; CBLError error; } CBLReplicatorStatus;
typedef struct {
    FLString id;
    unsigned flags;
    CBLError error;
    FLString scope;
    FLString collection;
} CBLReplicatedDocument;

typedef void (*CBLReplicatorChangeListener)(void *context, CBLReplicator *, const CBLReplicatorStatus *);
typedef void (*CBLDocumentReplicationListener)(
    void *context, CBLReplicator *, bool is_push, unsigned count, const CBLReplicatedDocument *);

CBLReplicator *CBLReplicator_Create(const CBLReplicatorConfiguration *, CBLError *);
void CBLReplicator_Start(CBLReplicator *, bool reset);
void CBLReplicator_Stop(CBLReplicator *);
CBLReplicatorStatus CBLReplicator_Status(CBLReplicator *);
CBLListenerToken *CBLReplicator_AddChangeListener(CBLReplicator *, CBLReplicatorChangeListener, void *context);
CBLListenerToken *CBLReplicator_AddDocumentReplicationListener(
    CBLReplicator *, CBLDocumentReplicationListener, void *context);
