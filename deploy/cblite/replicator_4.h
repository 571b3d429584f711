/* How a replicator is set up, from 4.0 on, which ordered it anew. */
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
