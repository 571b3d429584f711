/* Loaded before the C library: writes down what is done to the files of a state, and lets the N-th sync fail. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int trace = -1, syncs, failing = -1;

struct head {
    char kind;
    long inode, offset, length, second;
};

static void put(char kind, long inode, long offset, const void *data, long length, const void *more, long second) {
    struct head head = {kind, inode, offset, length, second};
    if (trace < 0) trace = open(getenv("TRACE"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    char *all = malloc(sizeof head + length + second);
    memcpy(all, &head, sizeof head);
    memcpy(all + sizeof head, data, length);
    memcpy(all + sizeof head + length, more, second);
    if (syscall(SYS_write, trace, all, sizeof head + length + second) < 0) abort();
    free(all);
}

/* Something happened that is no call: an acknowledgement, a document that the target has. */
void mark(const char *text) { put('M', 0, 0, text, strlen(text), "", 0); }

/* The N-th sync from now on fails, and what it was to write is in memory alone; 0: none. */
void fail(int number) { syncs = 0, failing = number; }

static long watched(int file) {
    char link[32], path[PATH_MAX];
    struct stat found;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    if (!strstr(path, "/state") || strstr(path, "-shm") || fstat(file, &found) || S_ISSOCK(found.st_mode)) return 0;
    return (long)found.st_ino;
}

#define REAL(name, type) ((type)dlsym(RTLD_NEXT, name))

#define OPEN(name)                                                                        \
    int name(const char *path, int flags, ...) {                                          \
        va_list more;                                                                     \
        va_start(more, flags);                                                            \
        mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;                         \
        va_end(more);                                                                     \
        int was = access(path, F_OK) == 0;                                                \
        int file = REAL(#name, int (*)(const char *, int, ...))(path, flags, mode);       \
        if (file < 0 || !strstr(path, "/state/")) return file;                            \
        long inode = watched(file);                                                       \
        if (inode && !was) put('O', inode, 0, path, strlen(path), "", 0);                 \
        if (inode && was && flags & O_TRUNC) put('T', inode, 0, "", 0, "", 0);            \
        return file;                                                                      \
    }
OPEN(open)
OPEN(open64)

ssize_t write(int file, const void *data, size_t size) {
    long inode = watched(file), at = inode ? lseek(file, 0, SEEK_CUR) : 0;
    if (inode && fcntl(file, F_GETFL) & O_APPEND) at = lseek(file, 0, SEEK_END);
    ssize_t done = REAL("write", ssize_t (*)(int, const void *, size_t))(file, data, size);
    if (inode && done > 0) put('W', inode, at, data, done, "", 0);
    return done;
}

#define PWRITE(name)                                                                                        \
    ssize_t name(int file, const void *data, size_t size, off64_t at) {                                     \
        ssize_t done = REAL(#name, ssize_t (*)(int, const void *, size_t, off64_t))(file, data, size, at);  \
        long inode = watched(file);                                                                         \
        if (inode && done > 0) put('W', inode, at, data, done, "", 0);                                      \
        return done;                                                                                        \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

#define SYNC(name)                                                     \
    int name(int file) {                                               \
        long inode = watched(file);                                    \
        int fails = inode && ++syncs == failing;                       \
        if (inode) put(fails ? 'F' : 'S', inode, 0, "", 0, "", 0);     \
        if (fails) return errno = EIO, -1;                             \
        return REAL(#name, int (*)(int))(file);                        \
    }
SYNC(fsync)
SYNC(fdatasync)

#define TRUNCATE(name)                                                 \
    int name(int file, off64_t size) {                                 \
        int done = REAL(#name, int (*)(int, off64_t))(file, size);     \
        long inode = watched(file);                                    \
        if (inode && !done) put('T', inode, size, "", 0, "", 0);       \
        return done;                                                   \
    }
TRUNCATE(ftruncate)
TRUNCATE(ftruncate64)

int rename(const char *from, const char *to) {
    int done = REAL("rename", int (*)(const char *, const char *))(from, to);
    if (!done && strstr(to, "/state/")) put('R', 0, 0, from, strlen(from), to, strlen(to));
    return done;
}

int unlink(const char *path) {
    int done = REAL("unlink", int (*)(const char *))(path);
    if (!done && strstr(path, "/state/")) put('U', 0, 0, path, strlen(path), "", 0);
    return done;
}
