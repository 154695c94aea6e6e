/* SPDX-License-Identifier: Apache-2.0
 * Sets the parameters that a run starts with: drawn ones, those of a checkpoint, or those of
 * another run; and the masters beside them. run->initial keeps a copy of the parameters. */
#include "trainer/run_private.h"

#include <string.h>

#include "model/pretrained.h"

/* Reads a row's tensor from the checkpoint, rounded as this run rounds. */
static enum status read_row(const struct run *run, const struct pretrained *pretrained,
                            uint32_t row, enum dtype to, void *values) {
    const struct pretrained_rounding rounding = {run->host, &run->model.call};
    return pretrained_values(pretrained, &run->table.rows[row], &rounding, to, values);
}

static enum status init_row(struct run *run, const struct pretrained *pretrained, uint32_t row,
                            void *values) {
    const struct run *start = run->options.start;
    if (start == NULL && pretrained != NULL)
        return read_row(run, pretrained, row, (enum dtype)run->config.numerics.param, values);
    if (start == NULL) return params_init(&run->config, &run->table, row, values);
    const enum dtype theirs = (enum dtype)start->config.numerics.param;
    if (start->table.count != run->table.count ||
        start->table.rows[row].count != run->table.rows[row].count)
        FAIL(STATUS_INTERNAL, "%s: the run to start from has another model",
             run->table.rows[row].name);
    run_convert(run, run->table.rows[row].count, theirs, (enum dtype)run->config.numerics.param,
                run_param_initial(start, row), values);
    return STATUS_OK;
}

/* A master starts from what the checkpoint holds, which may be wider than the parameter. A drawn
 * value or one of another run is taken from the parameter, as frameworks make masters. */
static enum status init_master(struct run *run, const struct pretrained *pretrained, uint32_t row,
                               const void *values) {
    void *master = run_at(run, run->layout.tensor[row].master);
    if (run->options.start == NULL && pretrained != NULL)
        return read_row(run, pretrained, row, run->layout.master_dtype, master);
    run_convert(run, run->table.rows[row].count, (enum dtype)run->config.numerics.param,
                run->layout.master_dtype, values, master);
    return STATUS_OK;
}

/* Sets every owner. `pretrained` is NULL where weights are drawn. */
static enum status init_rows(struct run *run, const struct pretrained *pretrained) {
    enum dtype param = (enum dtype)run->config.numerics.param;
    size_t carrier = dtype_carrier(param);
    for (uint32_t i = 0; i < run->owner_count; i++) {
        uint32_t row = run->owner[i];
        size_t count = run->table.rows[row].count;
        void *values = run_at(run, run->layout.tensor[row].param);
        TRY(init_row(run, pretrained, row, values));
        memcpy(run->initial + run->packed[row] * carrier, values, count * carrier);
        if (run->layout.has_master) TRY(init_master(run, pretrained, row, values));
    }
    return STATUS_OK;
}

enum status run_init_params(struct run *run) {
    struct pretrained pretrained;
    if (!pretrained_is_named(&run->config)) return init_rows(run, NULL);
    TRY(pretrained_open(&run->config, &pretrained));
    const enum status status = init_rows(run, &pretrained);
    pretrained_close(&pretrained);
    return status;
}
