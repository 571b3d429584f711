"""Blobs: bytes kept beside the documents, whole or as a stream."""

TEXT = """
typedef struct CBLBlobReadStream CBLBlobReadStream;
typedef struct CBLBlobWriteStream CBLBlobWriteStream;

bool FLDict_IsBlob(FLDict);
const CBLBlob *FLDict_GetBlob(FLDict);
void FLSlot_SetBlob(FLSlot, CBLBlob *);
CBLBlob *CBLBlob_CreateWithData(FLString content_type, FLSlice);
CBLBlob *CBLBlob_CreateWithStream(FLString content_type, CBLBlobWriteStream *);
uint64_t CBLBlob_Length(const CBLBlob *);
FLString CBLBlob_ContentType(const CBLBlob *);
FLString CBLBlob_Digest(const CBLBlob *);
FLSliceResult CBLBlob_Content(const CBLBlob *, CBLError *);
CBLBlobReadStream *CBLBlob_OpenContentStream(const CBLBlob *, CBLError *);
int CBLBlobReader_Read(CBLBlobReadStream *, void *, size_t, CBLError *);
void CBLBlobReader_Close(CBLBlobReadStream *);
CBLBlobWriteStream *CBLBlobWriter_Create(CBLDatabase *, CBLError *);
bool CBLBlobWriter_Write(CBLBlobWriteStream *, const void *, size_t, CBLError *);
void CBLBlobWriter_Close(CBLBlobWriteStream *);
"""
