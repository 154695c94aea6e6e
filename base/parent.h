/* SPDX-License-Identifier: Apache-2.0
 * The folder in which a file of a name is, or would be made, for questions about its file system.
 * It looks at the name alone. */
#ifndef TWINSTEP_BASE_PARENT_H
#define TWINSTEP_BASE_PARENT_H

struct parent {
    char text[4096]; /* with its last slash, or "."; cut where a path is no path any more */
};

struct parent parent_of(const char *path);

#endif
