/* SPDX-License-Identifier: Apache-2.0
 * Looks at owner and mode. Systems that give each user a group of the same name set the umask to
 * 002, so a group is looked up before it is distrusted. */
#define _DEFAULT_SOURCE /* getpwent */
#include "ablate/ablate_rights.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Says whether the group has this user as its only member. One that nobody has is not his. */
static int is_private_group(gid_t group) {
    const struct group *const entry = getgrgid(group);
    int has_us = 0, has_others = 0;
    const struct passwd *user;
    if (entry == NULL) return 0;
    for (size_t i = 0; entry->gr_mem[i] != NULL; i++) {
        user = getpwnam(entry->gr_mem[i]);
        has_others |= user == NULL || user->pw_uid != geteuid();
        has_us |= user != NULL && user->pw_uid == geteuid();
    }
    setpwent();
    while ((user = getpwent()) != NULL) {
        has_us |= user->pw_gid == group && user->pw_uid == geteuid();
        has_others |= user->pw_gid == group && user->pw_uid != geteuid();
    }
    endpwent();
    return has_us && !has_others;
}

enum status ablate_rights_check(const char *path, const char *harm) {
    struct stat info;
    if (stat(path, &info) != 0) FAIL(STATUS_IO, "%s: error: %s", path, strerror(errno));
    const unsigned mode = (unsigned)(info.st_mode & 0777);
    if (info.st_uid != geteuid() && info.st_uid != 0)
        FAIL(STATUS_INPUT, "%s: error: belongs to another user, %s", path, harm);
    if ((info.st_mode & S_IWOTH) != 0)
        FAIL(STATUS_INPUT, "%s: error: everybody can write to it (mode %03o), %s; chmod o-w it",
             path, mode, harm);
    if ((info.st_mode & S_IWGRP) != 0 && !is_private_group(info.st_gid))
        FAIL(STATUS_INPUT,
             "%s: error: its group, which has other members, can write to it (mode %03o), %s; "
             "chmod g-w it",
             path, mode, harm);
    return STATUS_OK;
}

enum status ablate_rights_check_own(const char *path, const char *harm) {
    struct stat info;
    if (lstat(path, &info) != 0) FAIL(STATUS_IO, "%s: error: %s", path, strerror(errno));
    if (S_ISLNK(info.st_mode)) FAIL(STATUS_INPUT, "%s: expected no link, got one", path);
    if (info.st_uid != geteuid()) FAIL(STATUS_INPUT, "%s: belongs to another user, %s", path, harm);
    if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        FAIL(STATUS_INPUT,
             "%s: others can write to it (mode %03o), %s; chmod go-w it if that is not meant", path,
             (unsigned)(info.st_mode & 0777), harm);
    return STATUS_OK;
}
