"""Listeners: what the library calls on threads of its own."""

TEXT = """
typedef struct { const CBLCollection *collection; unsigned count; FLString *ids; } CBLCollectionChange;
typedef void (*CBLCollectionChangeListener)(void *context, const CBLCollectionChange *);

CBLListenerToken *CBLCollection_AddChangeListener(const CBLCollection *, CBLCollectionChangeListener, void *context);
void CBLListener_Remove(CBLListenerToken *);
"""
