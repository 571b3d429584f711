/* Loaded before the C library: the N-th system call of a kind on a file of a state fails, as a disk's would. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static const char *kind = "";
static int seen, first, last, error;

/* From now on calls `first` to `last` of this kind fail with `error`; 0: writes are short. How many there were before. */
int arm(const char *of, int from, int to, int with) {
    int before = seen;
    kind = of, first = from, last = to, error = with, seen = 0;
    return before;
}

static int fails(const char *name, const char *path) {
    if (strcmp(name, kind) || !path || !strstr(path, "/state/")) return 0;
    seen++;
    return seen >= first && seen <= last;
}

static int fails_at(const char *name, int file) {
    char link[32], path[PATH_MAX];
    if (strcmp(name, kind)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    return fails(name, path);
}

#define REAL(name, type) ((type)dlsym(RTLD_NEXT, name))
#define REFUSED return errno = error, -1

#define OPEN(name)                                                        \
    int name(const char *path, int flags, ...) {                          \
        va_list more;                                                     \
        va_start(more, flags);                                            \
        mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;         \
        va_end(more);                                                     \
        if (fails("open", path)) REFUSED;                                 \
        return REAL(#name, int (*)(const char *, int, ...))(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

ssize_t write(int file, const void *data, size_t size) {
    if (fails_at("write", file)) {
        if (error || size < 2) REFUSED;
        size /= 2;
    }
    return REAL("write", ssize_t (*)(int, const void *, size_t))(file, data, size);
}

#define PWRITE(name)                                                                       \
    ssize_t name(int file, const void *data, size_t size, off64_t at) {                    \
        if (fails_at("write", file)) {                                                     \
            if (error || size < 2) REFUSED;                                                \
            size /= 2;                                                                     \
        }                                                                                  \
        return REAL(#name, ssize_t (*)(int, const void *, size_t, off64_t))(file, data, size, at); \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

#define PREAD(name)                                                                  \
    ssize_t name(int file, void *data, size_t size, off64_t at) {                    \
        if (fails_at("read", file)) REFUSED;                                         \
        return REAL(#name, ssize_t (*)(int, void *, size_t, off64_t))(file, data, size, at); \
    }
PREAD(pread)
PREAD(pread64)

#define SYNC(name)                                    \
    int name(int file) {                              \
        if (fails_at("sync", file)) REFUSED;          \
        return REAL(#name, int (*)(int))(file);       \
    }
SYNC(fsync)
SYNC(fdatasync)

#define TRUNCATE(name)                                           \
    int name(int file, off64_t size) {                           \
        if (fails_at("truncate", file)) REFUSED;                 \
        return REAL(#name, int (*)(int, off64_t))(file, size);   \
    }
TRUNCATE(ftruncate)
TRUNCATE(ftruncate64)

int rename(const char *from, const char *to) {
    if (fails("rename", to)) REFUSED;
    return REAL("rename", int (*)(const char *, const char *))(from, to);
}

int unlink(const char *path) {
    if (fails("unlink", path)) REFUSED;
    return REAL("unlink", int (*)(const char *))(path);
}
