/* How a replicator is set up, up to 3.x. */
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
