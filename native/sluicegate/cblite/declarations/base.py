"""Errors, reference counts, and the functions whose presence tells one version of the library from another."""

TEXT = """
typedef struct { uint8_t domain; int code; unsigned internal_info; } CBLError;
FLSliceResult CBLError_Message(const CBLError *);

typedef struct CBLDatabase CBLDatabase;
typedef struct CBLCollection CBLCollection;
typedef struct CBLDocument CBLDocument;
typedef struct CBLBlob CBLBlob;
typedef struct CBLQuery CBLQuery;
typedef struct CBLResultSet CBLResultSet;
typedef struct CBLReplicator CBLReplicator;
typedef struct CBLListenerToken CBLListenerToken;

void *CBL_Retain(void *);
void CBL_Release(void *);
unsigned CBL_InstanceCount(void);
void CBL_DumpInstances(void);
int64_t CBL_Now(void);

/* Never called: which of them a library exports says what it is. */
void CBLDatabase_SaveDocument(void);
void CBLDocument_Timestamp(void);
void CBLCollection_FullName(void);
void CBLCollection_CreateArrayIndex(void);
void CBLDatabase_PublicUUID(void);
void CBLDatabase_ChangeEncryptionKey(void);
"""
