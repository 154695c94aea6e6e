/* SPDX-License-Identifier: Apache-2.0
 * Says how an op's output is addressed, and how a view is walked. Before anyone sees a view the
 * backend has finished what it shows. Invariant: the order of cells is canonical, whatever the
 * layout. */
#include "model/watch.h"

#include <math.h>
#include <string.h>

#include "base/form.h"
#include "base/real.h"
#include "model/backends.h"

struct watch_view watch_view_of(const struct watch *watch, struct watch_name op,
                                struct watch_name tensor, void *data) {
    return (struct watch_view){.update = watch->update,
                               .stage = watch->stage,
                               .micro = watch->micro,
                               .layer = PASS_NO_LAYER,
                               .op = op,
                               .tensor = tensor,
                               .axis = WATCH_WHOLE,
                               .columns = WATCH_SCALARS,
                               .data = data,
                               .parameter = WATCH_NO_PARAMETER};
}

/* A view of what an op of a layer wrote. */
static struct watch_view view_of(const struct watch *watch, uint32_t layer, enum watch_label op,
                                 enum watch_label tensor, void *data) {
    struct watch_view view = watch_view_of(watch, watch_named(op), watch_named(tensor), data);
    view.layer = layer;
    return view;
}

const enum watch_label watch_places[DROP_PLACES] = {
    LABEL_EMBEDDING_DROPOUT, LABEL_ATTENTION_DROPOUT, LABEL_DROPOUT_A, LABEL_DROPOUT_B};

/* Adds the sequences of the pass. Its sides 2 and 3 are those of the reference (law 10). */
static void take_part(const struct pass *pass, struct watch_view *view) {
    view->batch = pass->batch;
    view->first_sequence = pass->part->first_sequence;
    view->sequence_count = pass->part->sequence_count;
    if (pass->side >= 2) view->stage = WATCH_REFERENCE;
}

static int is_wanted(const struct watch *watch, const struct watch_view *view) {
    return view->width > 0 && (watch->wants == NULL || watch->wants(watch->context, view));
}

void watch_hand_on(const struct watch *watch, const struct watch_view *view) {
    if (is_wanted(watch, view)) watch->see(watch->context, view);
}

void watch_show(const struct model *model, const struct watch_view *view) {
    struct watch *watch = model->watch;
    if (!is_wanted(watch, view)) return;
    const enum status status = model_wait(model);
    if (status == STATUS_OK)
        watch->see(watch->context, view);
    else if (watch->status == STATUS_OK)
        watch->status = status;
}

/* How many elements a view reaches over, from its data on. */
static size_t view_extent(const struct watch_view *view) {
    size_t end = 0;
    if (view->axis == WATCH_WHOLE) return view->count;
    for (uint32_t i = 0; i < watch_cells(view); i++) {
        const struct watch_cell cell = watch_cell_of(view, i);
        const unsigned char *const behind =
            (const unsigned char *)watch_row(view, &cell, cell.rows);
        const size_t here = (size_t)(behind - (const unsigned char *)view->data);
        if (here > end) end = here;
    }
    return end / watch_element(view);
}

/* Shows carriers of numbers in two bytes, and takes back what they are then. */
static enum status show_carriers(const struct watch *watch, const struct watch_view *view) {
    const struct form form = form_own(view->dtype);
    const size_t count = view_extent(view);
    struct arena arena = ARENA_EMPTY;
    struct watch_view seen = *view;
    const enum status status =
        arena_take(&arena, count, sizeof(float), "numbers that are watched", &seen.data);
    if (status == STATUS_OK) {
        seen.narrow = 0;
        form_widen(view->data, form, count, seen.data);
        watch->see(watch->context, &seen);
        if (!watch->only_reads) form_narrow(seen.data, form, count, view->data);
    }
    arena_close(&arena);
    return status;
}

static enum status show_copy(const struct model *model, const struct watch_view *view) {
    struct host_window window = HOST_WINDOW_EMPTY;
    struct watch_view seen = *view;
    const size_t element = view->narrow ? form_own(view->dtype).width : watch_element(view);
    const size_t bytes = view_extent(view) * element;
    enum status status = host_window_read(&window, model->backend, view->data, bytes, &seen.data);
    if (status == STATUS_OK && view->narrow)
        status = show_carriers(model->watch, &seen);
    else if (status == STATUS_OK)
        model->watch->see(model->watch->context, &seen);
    if (status == STATUS_OK && !model->watch->only_reads)
        status = host_window_store(&window, model->backend, view->data, bytes);
    host_window_close(&window);
    return status;
}

void watch_show_tensor(const struct model *model, const struct watch_view *view) {
    struct watch *watch = model->watch;
    if (!is_wanted(watch, view)) return;
    enum status status = model_wait(model);
    if (status == STATUS_OK) status = show_copy(model, view);
    if (status != STATUS_OK && watch->status == STATUS_OK) watch->status = status;
}

static void see_rows(const struct pass *pass, uint32_t layer, enum watch_label op,
                     enum watch_label tensor, void *data, enum watch_axis axis, struct form form,
                     struct watch_shape shape) {
    if (pass->model->watch == NULL) return;
    struct watch_view view = view_of(pass->model->watch, layer, op, tensor, data);
    take_part(pass, &view);
    view.axis = axis;
    view.dtype = form.dtype;
    view.narrow = form_is_narrow(form);
    view.columns = shape.columns;
    view.inner = shape.inner;
    view.width = shape.width;
    watch_show_tensor(pass->model, &view);
}

void watch_tokens(const struct pass *pass, uint32_t layer, enum watch_label op,
                  enum watch_label tensor, void *data, uint32_t width) {
    const struct watch_shape flat = {width, 1, WATCH_CHANNELS};
    see_rows(pass, layer, op, tensor, data, WATCH_TOKENS, pass->model->form, flat);
}

void watch_heads(const struct pass *pass, uint32_t layer, enum watch_label op,
                 enum watch_label tensor, void *data, uint32_t width) {
    const struct watch_shape split = {width, pass->model->D, WATCH_HEADS};
    see_rows(pass, layer, op, tensor, data, WATCH_TOKENS, pass->model->form, split);
}

void watch_labels(const struct pass *pass, enum watch_label op, enum watch_label tensor, void *data,
                  struct form form, struct watch_shape shape) {
    see_rows(pass, PASS_NO_LAYER, op, tensor, data, WATCH_LABELS, form, shape);
}

/* Columns of queries, keys and values are those of heads, and so are those of what enters
 * o_proj. */
void watch_role_output(const struct pass *pass, uint32_t layer, enum param_role role, int backward,
                       void *data, uint32_t width) {
    const int norm = role == ROLE_Q_NORM || role == ROLE_K_NORM;
    const int projection = role == ROLE_Q || role == ROLE_K || role == ROLE_V;
    const int heads = norm || (backward ? role == ROLE_O : projection);
    const enum watch_label tensor = backward ? LABEL_INPUT_GRADIENT : LABEL_OUTPUT;
    if (pass->rows.index == NULL) return;
    (heads ? watch_heads : watch_tokens)(pass, layer, watch_role(pass->model, role), tensor, data,
                                         width);
}

void watch_weight(const struct pass *pass, uint32_t layer, enum param_role role, void *acc,
                  uint32_t use, uint32_t from) {
    const struct model *model = pass->model;
    const struct watch *watch = model->watch;
    if (watch == NULL) return;
    const enum watch_label tensor = params_is_bias(role) ? LABEL_BIAS_GRADIENT
                                    : use == 0           ? LABEL_WEIGHT_GRADIENT
                                                         : LABEL_SECOND_WEIGHT_GRADIENT;
    const uint32_t row = params_owner(model->table, role, layer_index(layer));
    struct watch_view view = view_of(watch, layer, watch_role(model, role), tensor, acc);
    view.dtype = model->accumulate;
    view.columns = WATCH_MATRIX;
    view.count = model->table->rows[row].count;
    view.width = (size_t)model->table->rows[row].shape[1];
    view.covered = pass->batch->first_sample + pass->batch->sample_count;
    view.from = from;
    view.parameter = row;
    watch_show_tensor(pass->model, &view);
}

/* Memory for a mask: it grows when a larger one comes and never shrinks. */
static unsigned char *mask_room(struct watch *watch, size_t bytes) {
    if (bytes <= watch->mask_bytes) return watch->mask;
    arena_close(&watch->arena);
    watch->mask_bytes = 0;
    const enum status status =
        arena_take(&watch->arena, bytes, 1, "mask that is watched", &watch->mask);
    if (status != STATUS_OK) {
        watch->status = status;
        return NULL;
    }
    watch->mask_bytes = bytes;
    return watch->mask;
}

static uint32_t longest_of(const struct pass *pass) {
    const struct sequence *sequences = pass->batch->sequences + pass->part->first_sequence;
    uint32_t longest = 0;
    for (uint32_t i = 0; i < pass->part->sequence_count; i++)
        if (sequences[i].length > longest) longest = sequences[i].length;
    return longest;
}

static void fill_mask(const struct pass *pass, enum dropout_place place,
                      const struct dropout *dropout, uint32_t longest, size_t width,
                      unsigned char *row) {
    const struct model *model = pass->model;
    for (uint32_t i = 0; i < pass->part->sequence_count; i++) {
        const struct sequence *sequence = &pass->batch->sequences[pass->part->first_sequence + i];
        for (uint32_t p = 0; p < sequence->length; p++, row += width) {
            if (place != DROP_ATTENTION) {
                dropout_activation(dropout, sequence, p, model->C, row);
                continue;
            }
            for (uint32_t h = 0; h < model->H; h++)
                dropout_attention(dropout, sequence, model->H, h, p, p + 1,
                                  row + (size_t)h * longest);
        }
    }
}

/* Shows what the generator starts from. Offsets of PyTorch's generator follow the layout, so they
 * compare only at samples where both runs begin a call. */
static void show_generator(const struct pass *pass, enum dropout_place place, uint32_t layer,
                           struct dropout *dropout) {
    const struct watch *watch = pass->model->watch;
    uint64_t words[2] = {dropout->seed, dropout->offset};
    struct watch_view view =
        view_of(watch, layer, watch_places[place], LABEL_SEED_AND_OFFSET, words);
    view.kind = WATCH_WORDS;
    view.count = view.width = COUNT_OF(words);
    view.covered = pass->batch->first_sample + 1;
    watch_show(pass->model, &view);
    dropout->seed = words[0];
    dropout->offset = words[1];
}

void watch_mask(const struct pass *pass, enum dropout_place place, uint32_t layer,
                struct dropout *dropout) {
    struct watch *watch = pass->model->watch;
    if (watch == NULL) return;
    show_generator(pass, place, layer, dropout);
    const uint32_t longest = longest_of(pass);
    const int attention = place == DROP_ATTENTION;
    const size_t width = attention ? (size_t)pass->model->H * longest : pass->model->C;
    unsigned char *mask = mask_room(watch, width * pass->part->token_count);
    if (mask == NULL) return;
    fill_mask(pass, place, dropout, longest, width, mask);
    struct watch_view view = view_of(watch, layer, watch_places[place], LABEL_MASK, mask);
    take_part(pass, &view);
    view.axis = WATCH_LISTED;
    view.kind = WATCH_MASK;
    view.columns = attention ? WATCH_KEYS : WATCH_CHANNELS;
    view.inner = attention ? longest : 1;
    view.width = width;
    watch_show(pass->model, &view);
}

enum watch_label watch_role(const struct model *model, enum param_role role) {
    static const enum watch_label labels[ROLE_COUNT] = {
#define ROLE_LABEL(role, name, tensor, site, out, in, label) [ROLE_##role] = LABEL_##label,
        PARAM_ROLES(ROLE_LABEL)};
    if (model->config->model.family != FAMILY_OLMO2) return labels[role];
    if (role == ROLE_NORM_A) return LABEL_POST_ATTENTION_NORM;
    return role == ROLE_NORM_B ? LABEL_POST_MLP_NORM : labels[role];
}

size_t watch_element(const struct watch_view *view) {
    switch (view->kind) {
    case WATCH_IDS:
        return sizeof(uint32_t);
    case WATCH_WORDS:
        return sizeof(uint64_t);
    case WATCH_MASK:
        return 1;
    case WATCH_REALS:
    default:
        return dtype_carrier(view->dtype);
    }
}

uint32_t watch_cells(const struct watch_view *view) {
    switch (view->axis) {
    case WATCH_POSITIONS:
        return (uint32_t)view->count;
    case WATCH_WHOLE:
        return 1;
    case WATCH_SAMPLES:
        return view->batch->sample_count;
    default:
        return view->sequence_count;
    }
}

struct watch_cell watch_cell_of(const struct watch_view *view, uint32_t number) {
    struct watch_cell cell = {.rows = 1};
    if (view->axis == WATCH_WHOLE) {
        cell.index = view->covered;
        cell.from = view->from;
        cell.rows = view->width == 0 ? 0 : (uint32_t)(view->count / view->width);
    } else if (view->axis == WATCH_POSITIONS) {
        cell.index = number;
    } else if (view->axis == WATCH_SAMPLES) {
        cell.sequence = number;
        cell.sample = view->batch->first_sample + number;
        cell.index = 2 * cell.sample;
    } else {
        const struct sequence *sequence = &view->batch->sequences[view->first_sequence + number];
        cell.sequence = view->first_sequence + number;
        cell.sample = sequence->sample;
        cell.side = sequence->side;
        cell.index = 2 * cell.sample + cell.side;
        if (view->axis == WATCH_LABELS)
            cell.rows = view->batch->label_length[cell.sequence];
        else if (view->axis != WATCH_SEQUENCES)
            cell.rows = sequence->length;
    }
    return cell;
}

/* How many tokens of the view's sequences stand before `sequence` in call order. */
static size_t listed_before(const struct watch_view *view, uint32_t sequence) {
    size_t before = 0;
    for (uint32_t i = view->first_sequence; i < sequence; i++)
        before += view->batch->sequences[i].length;
    return before;
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t first_row(const struct watch_view *view, const struct watch_cell *cell) {
    switch (view->axis) {
    case WATCH_TOKENS:
        return view->batch->sequences[cell->sequence].row;
    case WATCH_LISTED:
        return listed_before(view, cell->sequence);
    case WATCH_LABELS:
        return view->batch->label_first[cell->sequence];
    case WATCH_SEQUENCES:
    case WATCH_SAMPLES:
        return cell->sequence;
    case WATCH_POSITIONS:
        return cell->index;
    case WATCH_WHOLE:
    default:
        return 0;
    }
}

const void *watch_row(const struct watch_view *view, const struct watch_cell *cell, uint32_t row) {
    const size_t at = (first_row(view, cell) + row) * view->width;
    return (const unsigned char *)view->data + at * watch_element(view);
}

uint32_t watch_position(const struct watch_view *view, const struct watch_cell *cell,
                        uint32_t row) {
    if (view->axis == WATCH_POSITIONS) return cell->index;
    if (view->axis != WATCH_LABELS) return row;
    const struct batch *batch = view->batch;
    return batch->label_row[batch->label_first[cell->sequence] + row] -
           batch->sequences[cell->sequence].row;
}

int watch_live(const struct watch_view *view, uint32_t position, size_t column) {
    return view->columns != WATCH_KEYS || column % view->inner <= position;
}

static uint64_t bits_of_real(double value) {
    return real_bits_f64(isnan(value) ? (double)NAN : value);
}

/* The bits of elements first .. first+count-1, a loop for each kind: a view of logits has millions.
 */
static void bits_of(const struct watch_view *view, const void *row, size_t first, size_t count,
                    uint64_t *restrict out) {
    switch (view->kind) {
    case WATCH_IDS:
        for (size_t i = 0; i < count; i++)
            out[i] = ((const uint32_t *)row)[first + i];
        return;
    case WATCH_WORDS:
        memcpy(out, (const uint64_t *)row + first, count * sizeof *out);
        return;
    case WATCH_MASK:
        for (size_t i = 0; i < count; i++)
            out[i] = ((const uint8_t *)row)[first + i];
        return;
    case WATCH_REALS:
    default:
        break;
    }
    if (view->dtype == DTYPE_F64)
        for (size_t i = 0; i < count; i++)
            out[i] = bits_of_real(((const double *)row)[first + i]);
    else
        for (size_t i = 0; i < count; i++)
            out[i] = bits_of_real((double)((const float *)row)[first + i]);
}

uint64_t watch_bits(const struct watch_view *view, const void *row, size_t column) {
    uint64_t bits;
    bits_of(view, row, column, 1, &bits);
    return bits;
}

/* Of the columns of a key's block those up to the position mean something. */
size_t watch_live_bits(const struct watch_view *view, const void *row, uint32_t position,
                       size_t *column, size_t room, uint64_t *out) {
    const size_t first = *column;
    size_t next = view->width, end = view->width;
    if (view->columns == WATCH_KEYS) {
        const size_t block = first - first % view->inner;
        next = least(next, block + view->inner);
        end = least(next, block + position + 1);
    }
    const size_t live = end > first ? end - first : 0, count = least(live, room);
    bits_of(view, row, first, count, out);
    *column = count < live ? first + count : next;
    return count;
}
