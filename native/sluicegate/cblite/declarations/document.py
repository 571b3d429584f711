"""Documents: identity, properties, JSON."""

TEXT = """
CBLDocument *CBLDocument_CreateWithID(FLString id);
CBLDocument *CBLDocument_MutableCopy(const CBLDocument *);
FLString CBLDocument_ID(const CBLDocument *);
FLString CBLDocument_RevisionID(const CBLDocument *);
uint64_t CBLDocument_Sequence(const CBLDocument *);
FLDict CBLDocument_Properties(const CBLDocument *);
FLDict CBLDocument_MutableProperties(CBLDocument *);
void CBLDocument_SetProperties(CBLDocument *, FLDict);
FLSliceResult CBLDocument_CreateJSON(const CBLDocument *);
bool CBLDocument_SetJSON(CBLDocument *, FLSlice json, CBLError *);
"""
