/* SPDX-License-Identifier: Apache-2.0
 * Chooses the next token from a row of logits: greedily, or drawn with temperature and top-p, in
 * f64 and by address. Candidates are ordered by probability, then by id. Invariant: equal logits
 * give equal choices on every machine. */
#include <math.h>
#include <string.h>

#include "base/element.h"
#include "base/real.h"
#include "base/sum.h"
#include "determinism/stream.h"
#include "model/generate.h"

#define GENERATE_OP 256 /* an op of STREAM_DATA; shuffling and rejected answers have 0 and 1 */

static double logit(const struct model *model, uint32_t row, uint32_t v) {
    return form_get(model->logits, model->form, (size_t)row * model->V + v);
}

static uint32_t best(const struct model *model, uint32_t row) {
    uint32_t found = 0;
    for (uint32_t v = 1; v < model->V; v++)
        if (logit(model, row, v) > logit(model, row, found)) found = v;
    return found;
}

/* Weighs every token at this temperature; weights are not divided by their sum, which is returned.
 * Keys sort the largest first: bits of a positive double have its order, so their complement
 * reverses it. */
static double weigh(struct generator *generator, const struct model *model, uint32_t row,
                    double temperature) {
    const double top = logit(model, row, best(model, row));
    double sum = 0.0;
    for (uint32_t v = 0; v < model->V; v++) {
        const double share = real_exp_f64((logit(model, row, v) - top) / temperature);
        generator->share[v] = share;
        memcpy(&generator->keys[v], &share, sizeof share);
        generator->keys[v] = ~generator->keys[v];
        sum = sum_chain_terms_f64_f64(sum, &share, 1);
    }
    return sum;
}

static double draw(const struct generate_options *options, uint32_t sequence, uint32_t number) {
    const struct stream_address address = {.stream = STREAM_DATA,
                                           .op = GENERATE_OP,
                                           .sample = (options->first + sequence) & 0x3FFFFFu,
                                           .update = options->repeat,
                                           .last_element = number};
    struct stream_site site;
    /* all fields are within their bounds */
    if (stream_pack(&address, &site) != STATUS_OK) return 0.5;
    return stream_uniform(stream_word(options->seed, site, number));
}

uint32_t generate_choose(struct generator *generator, const struct model *model, uint32_t row,
                         uint32_t sequence, uint32_t number,
                         const struct generate_options *options) {
    if (!(options->temperature > 0.0)) return best(model, row);
    const double sum = weigh(generator, model, row, options->temperature);
    if (!isfinite(sum)) return best(model, row);
    sum_permutation(model->V, generator->keys, generator->order);
    uint32_t count = 0;
    double kept = 0.0;
    /* The nucleus is the shortest list whose weights reach top_p of all; it has one token at
     * least. */
    while (count < model->V && (count == 0 || kept < options->top_p * sum))
        kept += generator->share[generator->order[count++]];
    double left = draw(options, sequence, number) * kept;
    for (uint32_t i = 0; i + 1 < count; i++) {
        left -= generator->share[generator->order[i]];
        if (left < 0.0) return generator->order[i];
    }
    return generator->order[count - 1];
}
