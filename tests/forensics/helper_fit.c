/* SPDX-License-Identifier: Apache-2.0
 * Nothing is searched for: all that a search would set is what the request says. */
#include "tests/forensics/helper_fit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/real.h"

struct contract_request helper_fit_request(const char *contract, const char *schedule, double lr,
                                           double warmup, uint64_t steps) {
    struct contract_request request;
    contract_request_init(&request);
    request.contract = contract_find(contract);
    assert_non_null(request.contract);
    request.schedule = schedule;
    request.lr = lr;
    request.warmup = warmup;
    request.steps = steps;
    return request;
}

void helper_fit_make(struct fit *out, struct arena *arena, const struct contract_request *request,
                     const struct fit_segment *segments) {
    memset(out, 0, sizeof *out);
    assert_int_equal(contract_resolve(request, arena, &out->plan), STATUS_OK);
    out->contract = request->contract;
    out->schedule = out->plan.schedule;
    out->schedule_name = request->schedule;
    out->parameters = "";
    out->text = "a fit";
    out->lr = request->lr;
    out->warmup = request->warmup;
    out->takes_warmup = 1;
    out->steps = request->steps;
    out->stride = 1.0;
    out->floor_ratio = real_nan_f64();
    out->segments = segments;
    out->segment_count = 1;
}
