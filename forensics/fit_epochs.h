/* SPDX-License-Identifier: Apache-2.0
 * An epoch column against update numbers. Private to forensics/fit*.c. */
#ifndef TWINSTEP_FORENSICS_FIT_EPOCHS_H
#define TWINSTEP_FORENSICS_FIT_EPOCHS_H

#include "forensics/fit.h"

struct fit_epochs {
    const struct log_column *column; /* NULL: none */
    double low, high; /* updates per epoch, fractional where the last one is short; 0, inf: any */
    int known;        /* somebody said how many */
};

/* What the request says of an epoch: its updates, or rows, batch and accumulation. */
void fit_epochs_open(struct fit_epochs *epochs, const struct log *log,
                     const struct contract_request *request);
/* Whether the column can be that of these updates. */
int fit_epochs_admit(const struct fit_epochs *epochs, const struct series_point *points,
                     size_t count);
/* Rows since the start, in spacings, at every point: 1, 2, 3, ..., but where the epoch falls back
 * (a resume): there what the epoch says. */
void fit_epochs_count(const struct fit_epochs *epochs, const struct series *series,
                      uint64_t *out_rows);

#endif
