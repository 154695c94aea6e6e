/* SPDX-License-Identifier: Apache-2.0
 * Builds a list of names in a text of fixed size. Room for the last words ("and 4 more") is kept
 * free. */
#include "checkpoints/listing.h"

#include <stdio.h>
#include <string.h>

#include "checkpoints/strict_json.h"

#define LAST_WORDS 40

void listing_add_text(struct listing *listing, const char *text) {
    const size_t used = listing->count == 0 ? 0 : strlen(listing->text);
    listing->count++;
    if (listing->shown + 1 < listing->count) return; /* it was full before */
    if (used + strlen(text) + 2 + LAST_WORDS >= sizeof listing->text) return;
    snprintf(listing->text + used, sizeof listing->text - used, "%s%s", used > 0 ? ", " : "", text);
    listing->shown++;
}

void listing_add(struct listing *listing, const char *name) {
    listing_add_text(listing, strict_quote(name).text);
}

const char *listing_close(struct listing *listing) {
    if (listing->count == 0) return "none";
    const size_t used = strlen(listing->text);
    if (listing->shown < listing->count)
        snprintf(listing->text + used, sizeof listing->text - used, " and %zu more",
                 listing->count - listing->shown);
    return listing->text;
}
