/* SPDX-License-Identifier: Apache-2.0
 * From the words of `twinstep parity` to two configurations.
 *
 * A word is a checkpoint folder, a scenario (file or name of the catalogue) for its first arm, or
 * SCENARIO:ARM. One word alone: a scenario's two arms; or, of a folder or one arm, the same thing
 * with what --set changes. Knows nothing of what is compared. */
#ifndef TWINSTEP_CLI_PARITY_LOAD_H
#define TWINSTEP_CLI_PARITY_LOAD_H

#include "cli/verb.h"

struct parity_word {
    const char *name;                /* "SCENARIO:ARM", or the folder */
    const char *folder;              /* NULL: a scenario */
    const char *path;                /* of the scenario, as given; NULL: a folder */
    const struct scenario *scenario; /* of a folder: one made up for it */
    const struct scenario_arm *arm;
};

struct parity_words {
    struct parity_word side[2];
};

/* `steps`: updates of both, as digits; NULL: their own. STATUS_INPUT: a word that names nothing, an
 * arm that is not there, one arm without --set. */
TWINSTEP_MUST_USE enum status parity_load(const struct cli *cli, const struct options *options,
                                          const char *steps, struct arena *arena,
                                          struct parity_words *out);

#endif
