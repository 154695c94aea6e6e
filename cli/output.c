/* SPDX-License-Identifier: Apache-2.0
 * Opens, closes and names the text files that verbs write.
 * Invariant: only files made here are ever removed. */
#include "cli/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/publish.h"

#define LIVE_NAMES 100

static enum status refuse(const char *path, const char *action, int reason) {
    return status_fail(STATUS_IO, "%s: cannot %s: %s", path, action, strerror(reason));
}

/* Opens what stands at the path and is no file: a device, a pipe or a link. Opening a pipe waits
 * for a reader, who may never come; with O_NONBLOCK it fails at once where there is none. Writing
 * may wait again, because a reader that is slow is no error. */
static enum status open_in_place(struct output *out) {
    const int handle =
        open(out->path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
    if (handle < 0 && errno == ENXIO)
        FAIL(STATUS_IO, "%s: a named pipe that nobody reads, or a socket", out->path);
    if (handle < 0) return refuse(out->path, "create", errno);
    const int flags = fcntl(handle, F_GETFL);
    if (flags >= 0 && fcntl(handle, F_SETFL, flags & ~O_NONBLOCK) == 0)
        out->file = fdopen(handle, "w");
    if (out->file != NULL) return STATUS_OK;
    const int reason = errno;
    close(handle);
    return refuse(out->path, "create", reason);
}

/* Opens the first live name that nobody has. */
static enum status open_live(struct output *out) {
    int handle = -1;
    for (int number = 1; handle < 0 && number <= LIVE_NAMES; number++) {
        if (number == 1)
            TRY(arena_format(&out->arena, &out->live, "%s.part", out->path));
        else
            TRY(arena_format(&out->arena, &out->live, "%s.part%d", out->path, number));
        handle = open(out->live, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
        if (handle < 0 && errno != EEXIST) break;
    }
    if (handle < 0) return refuse(out->path, "create", errno);
    out->file = fdopen(handle, "w");
    if (out->file != NULL) return STATUS_OK;
    const int reason = errno;
    close(handle);
    unlink(out->live);
    return refuse(out->path, "create", reason);
}

enum status output_open(const char *path, int overwrite, struct output *out) {
    struct stat info;
    *out = (struct output){.path = path, .overwrite = overwrite, .arena = ARENA_EMPTY};
    const int there = lstat(path, &info) == 0;
    if (there && !overwrite)
        FAIL(STATUS_IO, "%s: exists; choose another name, or ask to overwrite it (--overwrite)",
             path);
    const enum status status =
        there && !S_ISREG(info.st_mode) ? open_in_place(out) : open_live(out);
    if (status != STATUS_OK) arena_close(&out->arena);
    return status;
}

static enum status close_file(const struct output *output, enum status status) {
    const int failed = fflush(output->file) != 0 || ferror(output->file);
    int reason = failed ? errno : 0;
    if (fclose(output->file) != 0 && reason == 0) reason = errno;
    if (status == STATUS_IO) return status_prefix(status, "%s", output->path);
    if (status != STATUS_OK) return status;
    return reason == 0 ? STATUS_OK : refuse(output->path, "write", reason);
}

enum status output_close(struct output *output, enum status status) {
    status = close_file(output, status);
    if (output->live != NULL) {
        if (status == STATUS_OK) status = publish_settle(output->live);
        if (status == STATUS_OK)
            status = publish_name(output->live, output->path, output->overwrite);
        else
            unlink(output->live);
    }
    arena_close(&output->arena);
    return status;
}

enum status output_try(const char *path, int overwrite) {
    struct output output;
    struct stat info;
    if (path[0] == '\0') FAIL(STATUS_IO, "expected the name of a file to write, got nothing");
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        FAIL(STATUS_IO, "%s: expected a file, got a folder", path);
    if (lstat(path, &info) == 0 && S_ISLNK(info.st_mode) && stat(path, &info) != 0)
        FAIL(STATUS_IO, "%s: expected a file, got a link to one that is not there", path);
    if (overwrite && lstat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return STATUS_OK; /* it may be overwritten; opening it now would empty it */
    TRY(output_open(path, overwrite, &output));
    const enum status status = output.live != NULL && unlink(output.live) != 0
                                   ? refuse(output.live, "remove", errno)
                                   : STATUS_OK;
    (void)fclose(output.file); /* nothing was written */
    arena_close(&output.arena);
    return status;
}

enum status output_apart(const char *output, const char *input) {
    struct stat to, from;
    const int found = strcmp(input, "-") == 0 ? fstat(STDIN_FILENO, &from) : stat(input, &from);
    if (found != 0 || stat(output, &to) != 0 || !S_ISREG(to.st_mode)) return STATUS_OK;
    if (to.st_dev != from.st_dev || to.st_ino != from.st_ino) return STATUS_OK;
    FAIL(STATUS_INPUT, "%s: expected an output that is not read, got the input%s%s", output,
         strcmp(input, output) == 0 ? "" : " ", strcmp(input, output) == 0 ? "" : input);
}

enum status output_apart_folder(const char *output, const char *folder) {
    struct arena arena = ARENA_EMPTY;
    enum status status = STATUS_OK;
    DIR *open = opendir(folder);
    if (open == NULL) return STATUS_OK; /* whoever reads the folder reports that */
    for (struct dirent *entry; status == STATUS_OK && (entry = readdir(open)) != NULL;) {
        char *path;
        status = arena_format(&arena, &path, "%s/%s", folder, entry->d_name);
        if (status == STATUS_OK) status = output_apart(output, path);
    }
    closedir(open);
    arena_close(&arena);
    return status;
}

enum status output_hold_streams(void) {
    static const int ways[] = {O_WRONLY, O_RDONLY, O_RDONLY};
    for (int i = 0; i < (int)COUNT_OF(ways); i++)
        if (fcntl(i, F_GETFD) < 0 && open("/dev/null", ways[i]) != i)
            FAIL(STATUS_IO, "standard stream %d is closed, and /dev/null cannot be opened: %s", i,
                 strerror(errno));
    return STATUS_OK;
}
