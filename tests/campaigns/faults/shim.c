/* Fails chosen system calls of the processes that it is preloaded into (LD_PRELOAD, see ld.so(8)).

   The plan is a file that the test maps too (FAULT_PLAN; `injector.py` has the same layout). A call counts if it is about a
   path below the plan's root, or about standard output where the plan says so. The n-th call that counts, of the kinds that
   the plan chooses, gets the fault; with `persistent` all later ones do too. Processes share the counter. */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { WRITE, FSYNC, RENAME, CLOSE, LINK, UNLINK, MMAP, CREATE, OPEN, TRUNCATE, MKDIR, FLOCK, MODE, READ, STAT, LIST };
enum action { FAIL, SHORTEN, SIGNAL_IT, SIGNAL_ALL, FAIL_AFTER };

#define LOGGED 4096

struct plan {
    int armed, kinds, action, number, persistent, standard_output, leader, hits;
    long when, counted, seen;
    char root[512];
    char hit[256];
    unsigned char log[LOGGED];
};

static struct plan *plan;

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("FAULT_PLAN");
    int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0) : -1;
    if (fd < 0)
        return;
    long at = syscall(SYS_mmap, 0, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at != -1)
        plan = (struct plan *)at;
    syscall(SYS_close, fd);
}

static int is_below(const char *path) {
    size_t length = strlen(plan->root);
    return length && !strncmp(path, plan->root, length);
}

/* Return whether a path counts; one that is relative does, as the working folder is below the root. */
static int path_counts(int folder, const char *path) {
    if (!path || !plan || !plan->armed)
        return 0;
    if (path[0] == '/')
        return is_below(path);
    char buffer[600], link[64] = "/proc/self/cwd";
    if (folder != AT_FDCWD) {
        int n = folder, i = 14;
        char digits[12];
        int count = 0;
        strcpy(link, "/proc/self/fd/");
        do digits[count++] = (char)('0' + n % 10); while (n /= 10);
        while (count) link[i++] = digits[--count];
        link[i] = 0;
    }
    long got = syscall(SYS_readlink, link, buffer, sizeof buffer - 1);
    if (got <= 0)
        return 0;
    buffer[got] = 0;
    return is_below(buffer);
}

static int fd_counts(int fd) {
    if (!plan || !plan->armed || fd < 0)
        return 0;
    if (fd == 1 && plan->standard_output && getpid() == plan->leader)
        return 1;
    return path_counts(fd, "");
}

/* Count a call. Return whether it gets the fault; a signal is sent at once, and the call goes on. */
static int is_hit(enum kind kind, const char *what) {
    long seen = __atomic_fetch_add(&plan->seen, 1, __ATOMIC_SEQ_CST);
    if (seen < LOGGED)
        plan->log[seen] = (unsigned char)kind;
    if (!(plan->kinds >> kind & 1))
        return 0;
    long at = __atomic_add_fetch(&plan->counted, 1, __ATOMIC_SEQ_CST);
    if (plan->persistent ? at < plan->when : at != plan->when)
        return 0;
    if (__atomic_fetch_add(&plan->hits, 1, __ATOMIC_SEQ_CST) == 0 && what)
        strncpy(plan->hit, what, sizeof plan->hit - 1);
    if (plan->action == SIGNAL_IT || plan->action == SIGNAL_ALL) {
        int saved = errno;
        if (plan->action == SIGNAL_ALL)
            syscall(SYS_kill, plan->leader, plan->number);
        if (plan->action == SIGNAL_IT || getpid() != plan->leader)
            syscall(SYS_kill, getpid(), plan->number);
        errno = saved;
        return 0;
    }
    return 1;
}

/* A wrapper: `counts` says whether the call counts, `real` makes it. */
#define WRAP(type, name, parameters, kind, counts, what, real)        \
    type name parameters {                                            \
        if ((counts) && is_hit(kind, what)) {                         \
            if (plan->action == FAIL_AFTER || kind == CLOSE)          \
                (void)(real);                                         \
            errno = plan->number;                                     \
            return (type)-1;                                          \
        }                                                             \
        return (type)(real);                                          \
    }

/* A wrapper of a call that moves `length` bytes, of which a short one moves half. */
#define WRAP_MOVE(name, parameters, kind, fd, length, real)           \
    ssize_t name parameters {                                         \
        if (fd_counts(fd) && is_hit(kind, #name)) {                   \
            if (plan->action == SHORTEN) {                            \
                if (length > 1)                                       \
                    length /= 2;                                      \
            } else {                                                  \
                if (plan->action == FAIL_AFTER)                       \
                    (void)(real);                                     \
                errno = plan->number;                                 \
                return -1;                                            \
            }                                                         \
        }                                                             \
        return real;                                                  \
    }

WRAP_MOVE(write, (int fd, const void *data, size_t length), WRITE, fd, length, syscall(SYS_write, fd, data, length))
WRAP_MOVE(pwrite, (int fd, const void *data, size_t length, off_t at), WRITE, fd, length,
          syscall(SYS_pwrite64, fd, data, length, at))
WRAP_MOVE(pwrite64, (int fd, const void *data, size_t length, off64_t at), WRITE, fd, length,
          syscall(SYS_pwrite64, fd, data, length, at))
WRAP_MOVE(writev, (int fd, const struct iovec *parts, int length), WRITE, fd, length, syscall(SYS_writev, fd, parts, length))
WRAP_MOVE(sendfile, (int out, int in, off_t *at, size_t length), WRITE, out, length,
          syscall(SYS_sendfile, out, in, at, length))
WRAP_MOVE(sendfile64, (int out, int in, off64_t *at, size_t length), WRITE, out, length,
          syscall(SYS_sendfile, out, in, at, length))
WRAP_MOVE(copy_file_range, (int in, off64_t *from, int out, off64_t *to, size_t length, unsigned flags), WRITE, out, length,
          syscall(SYS_copy_file_range, in, from, out, to, length, flags))
WRAP_MOVE(read, (int fd, void *data, size_t length), READ, fd, length, syscall(SYS_read, fd, data, length))
WRAP_MOVE(pread, (int fd, void *data, size_t length, off_t at), READ, fd, length,
          syscall(SYS_pread64, fd, data, length, at))
WRAP_MOVE(pread64, (int fd, void *data, size_t length, off64_t at), READ, fd, length,
          syscall(SYS_pread64, fd, data, length, at))

WRAP(int, fsync, (int fd), FSYNC, fd_counts(fd), "fsync", syscall(SYS_fsync, fd))
WRAP(int, fdatasync, (int fd), FSYNC, fd_counts(fd), "fdatasync", syscall(SYS_fdatasync, fd))
WRAP(int, close, (int fd), CLOSE, fd_counts(fd), "close", syscall(SYS_close, fd))
WRAP(int, ftruncate, (int fd, off_t length), TRUNCATE, fd_counts(fd), "ftruncate", syscall(SYS_ftruncate, fd, length))
WRAP(int, ftruncate64, (int fd, off64_t length), TRUNCATE, fd_counts(fd), "ftruncate", syscall(SYS_ftruncate, fd, length))
WRAP(int, fallocate, (int fd, int mode, off_t at, off_t length), TRUNCATE, fd_counts(fd), "fallocate",
     syscall(SYS_fallocate, fd, mode, at, length))
WRAP(int, flock, (int fd, int how), FLOCK, fd_counts(fd), "flock", syscall(SYS_flock, fd, how))
WRAP(int, fchmod, (int fd, mode_t mode), MODE, fd_counts(fd), "fchmod", syscall(SYS_fchmod, fd, mode))
WRAP(int, fchown, (int fd, uid_t user, gid_t group), MODE, fd_counts(fd), "fchown", syscall(SYS_fchown, fd, user, group))
WRAP(int, futimens, (int fd, const struct timespec *times), MODE, fd_counts(fd), "futimens",
     syscall(SYS_utimensat, fd, 0, times, 0))

WRAP(int, rename, (const char *old, const char *new), RENAME, path_counts(AT_FDCWD, new), new,
     syscall(SYS_renameat2, AT_FDCWD, old, AT_FDCWD, new, 0))
WRAP(int, renameat, (int from, const char *old, int to, const char *new), RENAME, path_counts(to, new), new,
     syscall(SYS_renameat2, from, old, to, new, 0))
WRAP(int, renameat2, (int from, const char *old, int to, const char *new, unsigned flags), RENAME, path_counts(to, new), new,
     syscall(SYS_renameat2, from, old, to, new, flags))
WRAP(int, link, (const char *old, const char *new), LINK, path_counts(AT_FDCWD, new), new,
     syscall(SYS_linkat, AT_FDCWD, old, AT_FDCWD, new, 0))
WRAP(int, linkat, (int from, const char *old, int to, const char *new, int flags), LINK, path_counts(to, new), new,
     syscall(SYS_linkat, from, old, to, new, flags))
WRAP(int, symlink, (const char *old, const char *new), LINK, path_counts(AT_FDCWD, new), new,
     syscall(SYS_symlinkat, old, AT_FDCWD, new))
WRAP(int, unlink, (const char *path), UNLINK, path_counts(AT_FDCWD, path), path, syscall(SYS_unlinkat, AT_FDCWD, path, 0))
WRAP(int, unlinkat, (int folder, const char *path, int flags), UNLINK, path_counts(folder, path), path,
     syscall(SYS_unlinkat, folder, path, flags))
WRAP(int, rmdir, (const char *path), UNLINK, path_counts(AT_FDCWD, path), path,
     syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR))
WRAP(int, mkdir, (const char *path, mode_t mode), MKDIR, path_counts(AT_FDCWD, path), path,
     syscall(SYS_mkdirat, AT_FDCWD, path, mode))
WRAP(int, mkdirat, (int folder, const char *path, mode_t mode), MKDIR, path_counts(folder, path), path,
     syscall(SYS_mkdirat, folder, path, mode))
WRAP(int, chmod, (const char *path, mode_t mode), MODE, path_counts(AT_FDCWD, path), path,
     syscall(SYS_fchmodat, AT_FDCWD, path, mode))
WRAP(int, fchmodat, (int folder, const char *path, mode_t mode, int flags), MODE, path_counts(folder, path), path,
     syscall(SYS_fchmodat, folder, path, mode, flags))
WRAP(int, utimensat, (int folder, const char *path, const struct timespec *times, int flags), MODE, path_counts(folder, path),
     path, syscall(SYS_utimensat, folder, path, times, flags))
WRAP(void *, mmap, (void *at, size_t length, int protection, int flags, int fd, off_t offset), MMAP,
     !(flags & MAP_ANONYMOUS) && fd_counts(fd), "mmap", syscall(SYS_mmap, at, length, protection, flags, fd, offset))
WRAP(void *, mmap64, (void *at, size_t length, int protection, int flags, int fd, off64_t offset), MMAP,
     !(flags & MAP_ANONYMOUS) && fd_counts(fd), "mmap", syscall(SYS_mmap, at, length, protection, flags, fd, offset))

static enum kind opening(int flags) {
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? CREATE : OPEN;
}

#define MODE_OF(flags)                                                \
    va_list rest;                                                     \
    va_start(rest, flags);                                            \
    int mode = opening(flags) == CREATE ? va_arg(rest, int) : 0;      \
    va_end(rest)

static int open_at(int folder, const char *path, int flags, int mode) {
    if (path_counts(folder, path) && is_hit(opening(flags), path)) {
        if (plan->action == FAIL_AFTER) {
            long fd = syscall(SYS_openat, folder, path, flags, mode);
            if (fd >= 0)
                syscall(SYS_close, fd);
        }
        errno = plan->number;
        return -1;
    }
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

int open(const char *path, int flags, ...) { MODE_OF(flags); return open_at(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE_OF(flags); return open_at(AT_FDCWD, path, flags | O_LARGEFILE, mode); }
int openat(int folder, const char *path, int flags, ...) { MODE_OF(flags); return open_at(folder, path, flags, mode); }
int openat64(int folder, const char *path, int flags, ...) { MODE_OF(flags); return open_at(folder, path, flags | O_LARGEFILE, mode); }

#define NEXT(type, name, ...)                                         \
    static type (*next)(__VA_ARGS__);                                 \
    if (!next)                                                        \
        next = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define STAT(name, path, counts, parameters, arguments, ...)          \
    int name parameters {                                             \
        NEXT(int, #name, __VA_ARGS__);                                \
        if ((counts) && is_hit(STAT, path)) {                         \
            errno = plan->number;                                     \
            return -1;                                                \
        }                                                             \
        return next arguments;                                        \
    }

STAT(stat, path, path_counts(AT_FDCWD, path), (const char *path, struct stat *to), (path, to), const char *, struct stat *)
STAT(stat64, path, path_counts(AT_FDCWD, path), (const char *path, struct stat64 *to), (path, to), const char *, struct stat64 *)
STAT(lstat, path, path_counts(AT_FDCWD, path), (const char *path, struct stat *to), (path, to), const char *, struct stat *)
STAT(lstat64, path, path_counts(AT_FDCWD, path), (const char *path, struct stat64 *to), (path, to), const char *, struct stat64 *)
STAT(fstat, "fstat", fd_counts(fd), (int fd, struct stat *to), (fd, to), int, struct stat *)
STAT(fstat64, "fstat", fd_counts(fd), (int fd, struct stat64 *to), (fd, to), int, struct stat64 *)
STAT(fstatat, path, path_counts(folder, path), (int folder, const char *path, struct stat *to, int flags),
     (folder, path, to, flags), int, const char *, struct stat *, int)
STAT(fstatat64, path, path_counts(folder, path), (int folder, const char *path, struct stat64 *to, int flags),
     (folder, path, to, flags), int, const char *, struct stat64 *, int)

DIR *opendir(const char *path) {
    NEXT(DIR *, "opendir", const char *);
    if (path_counts(AT_FDCWD, path) && is_hit(LIST, path)) {
        errno = plan->number;
        return NULL;
    }
    return next(path);
}

DIR *fdopendir(int fd) {
    NEXT(DIR *, "fdopendir", int);
    if (fd_counts(fd) && is_hit(LIST, "fdopendir")) {
        errno = plan->number;
        return NULL;
    }
    return next(fd);
}
