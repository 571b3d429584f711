"""Fleece: slices, values, and the mutable collections a document's properties are made of."""

TEXT = """
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
FLStringResult FLValue_ToJSON(FLValue);
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
void FLDictIterator_End(FLDictIterator *);

FLDict FLMutableDict_New(void);
FLDict FLMutableDict_NewFromJSON(FLString, int *);
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
"""
