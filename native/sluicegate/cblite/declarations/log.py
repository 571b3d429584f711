"""The library's own messages: log sinks from 3.2.2 on, the console's level before."""

TEXT = """
typedef struct { uint8_t level; uint16_t domains; } CBLConsoleLogSink;
typedef struct { uint8_t level; void (*callback)(uint8_t, uint8_t, FLString); uint16_t domains; } CBLCustomLogSink;

void CBLLogSinks_SetConsole(CBLConsoleLogSink);
void CBLLogSinks_SetCustom(CBLCustomLogSink);
void CBLLog_SetConsoleLevel(uint8_t);
"""
