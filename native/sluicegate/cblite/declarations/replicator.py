"""Replicators. The configuration's order changed with 4.0; everything else is the same for 3.1 to 4.x."""

_BEFORE = """
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
"""

_CONFIGURATION_3 = """
typedef struct {
    CBLDatabase *database;
    CBLEndpoint *endpoint;
    uint8_t replicatorType;
    bool continuous;
    bool disableAutoPurge;
    unsigned maxAttempts;
    unsigned maxAttemptWaitTime;
    unsigned heartbeat;
    CBLAuthenticator *authenticator;
    const void *proxy;
    FLDict headers;
    FLSlice pinnedServerCertificate;
    FLSlice trustedRootCertificates;
    FLArray channels;
    FLArray documentIDs;
    void *pushFilter;
    void *pullFilter;
    void *conflictResolver;
    void *context;
    CBLReplicationCollection *collections;
    size_t collectionCount;
    bool acceptParentDomainCookies;
} CBLReplicatorConfiguration;
"""

_CONFIGURATION_4 = """
typedef struct {
    CBLReplicationCollection *collections;
    size_t collectionCount;
    CBLEndpoint *endpoint;
    uint8_t replicatorType;
    bool continuous;
    CBLAuthenticator *authenticator;
    void *context;
    FLSlice pinnedServerCertificate;
    bool disableAutoPurge;
    unsigned maxAttempts;
    unsigned maxAttemptWaitTime;
    unsigned heartbeat;
    FLDict headers;
    const void *proxy;
    bool acceptParentDomainCookies;
    FLSlice trustedRootCertificates;
} CBLReplicatorConfiguration;
"""

_AFTER = """
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
void CBLReplicator_SetHostReachable(CBLReplicator *, bool);
void CBLReplicator_SetSuspended(CBLReplicator *, bool);
CBLReplicatorStatus CBLReplicator_Status(CBLReplicator *);
FLDict CBLReplicator_PendingDocumentIDs2(CBLReplicator *, const CBLCollection *, CBLError *);
bool CBLReplicator_IsDocumentPending2(CBLReplicator *, FLString id, const CBLCollection *, CBLError *);
CBLListenerToken *CBLReplicator_AddChangeListener(CBLReplicator *, CBLReplicatorChangeListener, void *context);
CBLListenerToken *CBLReplicator_AddDocumentReplicationListener(
    CBLReplicator *, CBLDocumentReplicationListener, void *context);
"""

TEXTS = {3: _BEFORE + _CONFIGURATION_3 + _AFTER, 4: _BEFORE + _CONFIGURATION_4 + _AFTER}
"""By major version."""
