"""Collections: documents in and out, expiry, indexes."""

TEXT = """
typedef struct { uint32_t language; FLString expressions; FLString where; } CBLValueIndexConfiguration;

uint64_t CBLCollection_Count(const CBLCollection *);
const CBLDocument *CBLCollection_GetDocument(const CBLCollection *, FLString id, CBLError *);
CBLDocument *CBLCollection_GetMutableDocument(CBLCollection *, FLString id, CBLError *);
bool CBLCollection_SaveDocumentWithConcurrencyControl(CBLCollection *, CBLDocument *, uint8_t control, CBLError *);
bool CBLCollection_DeleteDocumentWithConcurrencyControl(
    CBLCollection *, const CBLDocument *, uint8_t control, CBLError *);
bool CBLCollection_PurgeDocumentByID(CBLCollection *, FLString id, CBLError *);
int64_t CBLCollection_GetDocumentExpiration(CBLCollection *, FLString id, CBLError *);
bool CBLCollection_SetDocumentExpiration(CBLCollection *, FLString id, int64_t milliseconds, CBLError *);
bool CBLCollection_CreateValueIndex(CBLCollection *, FLString name, CBLValueIndexConfiguration, CBLError *);
bool CBLCollection_DeleteIndex(CBLCollection *, FLString name, CBLError *);
FLArray CBLCollection_GetIndexNames(CBLCollection *, CBLError *);
"""
