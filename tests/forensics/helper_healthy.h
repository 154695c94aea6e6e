/* SPDX-License-Identifier: Apache-2.0
 * Random healthy trainings of every contract, their logs, and what check and fit say of them. */
#ifndef TWINSTEP_TESTS_FORENSICS_HELPER_HEALTHY_H
#define TWINSTEP_TESTS_FORENSICS_HELPER_HEALTHY_H

#include <stddef.h>
#include <stdint.h>

struct healthy_count {
    size_t logs, passed, undecided, failed;
};

/* Draws `cases` trainings of every contract and checks them. Each failure is printed with its
 * training. Only the printed column is asked about: once with all numbers given, and once with none
 * but the log's total, where the log starts at update 1 and has all rows. With `pinned` nonzero,
 * what is said must be the text of tests/golden/forensics/fit_healthy.txt. */
void healthy_check(size_t cases, uint64_t seed, int pinned, struct healthy_count *out);
/* Does the same for the applied column, with all numbers given. */
void healthy_check_applied(size_t cases, uint64_t seed, int pinned, struct healthy_count *out);
/* Does the same where the schedule holds at a skipped update and some updates were skipped, of
 * which nobody tells the check. Logs whose contract never holds are left out. */
void healthy_check_skips(size_t cases, uint64_t seed, int pinned, struct healthy_count *out);
/* Does the same for logs of resumed runs, which skipped other updates the second time. */
void healthy_check_resumed(size_t cases, uint64_t seed, int pinned, struct healthy_count *out);
/* Fits the logs; out->failed counts those whose contract, schedule and numbers are not among the
 * fits. */
void healthy_fit(size_t cases, uint64_t seed, int pinned, struct healthy_count *out);

#endif
