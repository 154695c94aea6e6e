/* SPDX-License-Identifier: Apache-2.0
 * An epoch column against update numbers. Private to forensics/fit*.c. */
#ifndef TWINSTEP_FORENSICS_FIT_EPOCHS_H
#define TWINSTEP_FORENSICS_FIT_EPOCHS_H

#include "forensics/fit.h"

struct fit_epochs {
    const struct log_column *column; /* NULL: none */
    double low, high; /* updates per epoch, fractional where the last one is short; from 0 to
                         infinity when nothing is known */
    int known;        /* 1: somebody said how many */
};

/* Sets what the request says of an epoch: its updates, or its rows, batch and accumulation. */
void fit_epochs_open(struct fit_epochs *epochs, const struct log *log,
                     const struct contract_request *request);
/* Tells whether the epoch column can be that of these updates. */
int fit_epochs_admit(const struct fit_epochs *epochs, const struct series_point *points,
                     size_t count);
/* Counts the rows since the start, in spacings, at every point: 1, 2, 3, ...; where the epoch falls
 * back (a resume), the epoch says how many. */
void fit_epochs_count(const struct fit_epochs *epochs, const struct series *series,
                      uint64_t *out_rows);

#endif
