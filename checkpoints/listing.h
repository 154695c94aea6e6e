/* SPDX-License-Identifier: Apache-2.0
 * A list of names for an error text: the first few names, and how many more there are. Private to
 * checkpoints/. */
#ifndef TWINSTEP_CHECKPOINTS_LISTING_H
#define TWINSTEP_CHECKPOINTS_LISTING_H

#include <stddef.h>

#define LISTING_SIZE 800

struct listing {
    size_t count; /* 0 at the beginning */
    size_t shown;
    char text[LISTING_SIZE];
};

/* Adds a name, escaped as strict_quote does. */
void listing_add(struct listing *listing, const char *name);
/* Adds a text as it is. */
void listing_add_text(struct listing *listing, const char *text);
/* The list: "a, b, c and 4 more", or "none". */
const char *listing_close(struct listing *listing);

#endif
