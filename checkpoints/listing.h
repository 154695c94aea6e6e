/* SPDX-License-Identifier: Apache-2.0
 * Names one after the other for an error text: the first few, and how many more there are.
 * Private to checkpoints/. */
#ifndef TWINSTEP_CHECKPOINTS_LISTING_H
#define TWINSTEP_CHECKPOINTS_LISTING_H

#include <stddef.h>

#define LISTING_SIZE 800

struct listing {
    size_t count; /* 0 to begin with */
    size_t shown;
    char text[LISTING_SIZE];
};

/* `name` is escaped as strict_quote does. */
void listing_add(struct listing *listing, const char *name);
/* As it is. */
void listing_add_text(struct listing *listing, const char *text);
/* "a, b, c and 4 more"; "none" */
const char *listing_close(struct listing *listing);

#endif
