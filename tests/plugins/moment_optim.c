/* SPDX-License-Identifier: Apache-2.0
 * The template, which tells besides that its first slot is a linear moment, as optim/sgd.c does of
 * the same arithmetic: so the program reads back from it what the optimizer took in, and a test
 * compares what it reads of the two. */
#define TWINSTEP_MODULE
#include "optim/optim_module.h"

/* slot' = keep * slot + take * gradient; the template's values begin with the momentum. */
static int moment_of(const void *values, uint64_t t, double *out_keep, double *out_take) {
    const double momentum = *(const double *)values;
    *out_keep = t == 1 ? 0.0 : momentum;
    *out_take = 1.0;
    return momentum != 0.0;
}

#define OPTIM_ELEMENTWISE OPTIM_ELEMENTWISE, .moment = moment_of
#include "tests/plugins/template_optim.c"
