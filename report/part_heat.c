/* SPDX-License-Identifier: Apache-2.0
 * Where the arms differ: phases, activations, gradients and parameters by update, from digests
 * alone.
 *
 * A row is a name that both arms have; where names are many, those of one layer become one row. A
 * strip beside it shows the updates in at most STRIP_CELLS cells. Invariant: a digest that was not
 * recorded counts neither as equal nor as different. */
#include <string.h>

#include "report/page.h"

#define STRIP_CELLS 120
#define CELLS_APART 40 /* up to so many cells are drawn with a gap between them */
#define ROWS_SHOWN 80

enum heat_kind { HEAT_PHASE = 0, HEAT_SITE, HEAT_GRADIENT, HEAT_PARAMETER, HEAT_KINDS };

struct heat_cell {
    uint64_t differing, known; /* how many updates differ, and how many have a digest */
};

struct heat_row {
    const char *name;
    size_t name_length;
    uint32_t from, end;        /* the names in the baseline's list that the row stands for */
    uint64_t first;            /* the first update that differs; 0: none */
    uint64_t differing, known; /* as of its cells, all together */
    struct heat_cell *cells;   /* (cells_of) */
    int shown;
};

struct heat {
    struct page *page;
    enum heat_kind kind;
    const char *const *names[2];
    uint32_t count[2];
    uint32_t *other; /* (count[0]) the same name's index in the test arm's list, or UINT32_MAX */
    struct heat_row *rows;
    uint32_t row_count;
};

static const uint8_t *digest_of(const struct record *record, enum heat_kind kind, uint32_t i) {
    switch (kind) {
    case HEAT_PHASE:
        return record->phases[i];
    case HEAT_SITE:
        return record->sites[i];
    case HEAT_GRADIENT:
        return record->tensor_digests[i][TENSOR_DIGEST_GRADIENT];
    default:
        return record->tensor_digests[i][TENSOR_DIGEST_PARAMETER];
    }
}

/* Compares one name at one update: 1 it differs, 0 it is equal, -1 a digest is missing. */
static int compare_name(const struct heat *heat, uint64_t update, uint32_t i) {
    if (heat->other[i] == UINT32_MAX) return -1;
    const uint8_t *a = digest_of(trace_row(heat->page->run[0], update), heat->kind, i);
    const uint8_t *b = digest_of(trace_row(heat->page->run[1], update), heat->kind, heat->other[i]);
    if (!record_has_digest(a) || !record_has_digest(b)) return -1;
    return memcmp(a, b, RECORD_DIGEST_BYTES) != 0;
}

static int compare_row(const struct heat *heat, const struct heat_row *row, uint64_t update) {
    int result = -1;
    for (uint32_t i = row->from; i < row->end && result < 1; i++) {
        const int one = compare_name(heat, update, i);
        if (one > result) result = one;
    }
    return result;
}

/* ---- rows ---- */

static void name_lists(struct heat *heat) {
    for (int arm = 0; arm < 2; arm++) {
        const struct trace_run_plan *plan = &heat->page->run[arm]->plan;
        heat->names[arm] = heat->kind == HEAT_PHASE  ? plan->phases
                           : heat->kind == HEAT_SITE ? plan->sites
                                                     : plan->tensors;
        heat->count[arm] = heat->kind == HEAT_PHASE  ? plan->shape.phases
                           : heat->kind == HEAT_SITE ? plan->shape.sites
                                                     : plan->shape.tensors;
    }
}

/* Finds a name in the test arm's list, from index `guess` on: names are nearly always in the same
 * order in both lists, and then each costs one comparison. */
static uint32_t find_other(const struct heat *heat, const char *name, uint32_t guess) {
    for (uint32_t step = 0; step < heat->count[1]; step++) {
        const uint32_t i = (guess + step) % heat->count[1];
        if (strcmp(heat->names[1][i], name) == 0) return i;
    }
    return UINT32_MAX;
}

static enum status match_names(struct heat *heat) {
    uint32_t guess = 0;
    TRY(arena_take(heat->page->arena, heat->count[0], sizeof *heat->other, "report", &heat->other));
    for (uint32_t i = 0; i < heat->count[0]; i++) {
        heat->other[i] = find_other(heat, heat->names[0][i], guess);
        if (heat->other[i] != UINT32_MAX) guess = heat->other[i] + 1;
    }
    return STATUS_OK;
}

/* The length of the layer's part of a name, "model.layers.12" of
 * "model.layers.12.mlp.up_proj.weight"; that of the whole name where no part is a number. */
static size_t layer_length(const char *name) {
    for (size_t i = 0; name[i] != '\0'; i++) {
        if ((i > 0 && name[i - 1] != '.') || name[i] < '0' || name[i] > '9') continue;
        const size_t end = i + strspn(name + i, "0123456789");
        if (name[end] == '.' || name[end] == '\0') return end;
    }
    return strlen(name);
}

static int same_layer(const struct heat_row *row, const char *name) {
    const size_t length = layer_length(name);
    return row->name_length == length && memcmp(row->name, name, length) == 0;
}

static enum status make_rows(struct heat *heat) {
    const int by_layer = heat->count[0] > ROWS_SHOWN;
    TRY(arena_take(heat->page->arena, heat->count[0], sizeof *heat->rows, "report", &heat->rows));
    for (uint32_t i = 0; i < heat->count[0]; i++) {
        const char *name = heat->names[0][i];
        if (by_layer && i > 0 && same_layer(&heat->rows[heat->row_count - 1], name)) {
            heat->rows[heat->row_count - 1].end = i + 1;
            continue;
        }
        heat->rows[heat->row_count++] =
            (struct heat_row){.name = name,
                              .name_length = by_layer ? layer_length(name) : strlen(name),
                              .from = i,
                              .end = i + 1};
    }
    return STATUS_OK;
}

static uint32_t cells_of(const struct heat *heat) {
    const uint64_t updates = heat->page->judgement.updates;
    return updates < STRIP_CELLS ? (uint32_t)updates : STRIP_CELLS;
}

/* Cell `cell` stands for the updates from this one to that of the next cell. */
static uint64_t cell_begin(const struct heat *heat, uint32_t cell) {
    return heat->page->judgement.updates * cell / cells_of(heat);
}

static void count_update(const struct heat *heat, struct heat_row *row, uint64_t i, uint32_t cell) {
    const int result = compare_row(heat, row, i);
    if (result < 0) return;
    row->known++;
    row->cells[cell].known++;
    if (result == 0) return;
    row->differing++;
    row->cells[cell].differing++;
    if (row->first == 0) row->first = trace_row(heat->page->run[0], i)->step;
}

/* One walk over the updates for all rows, since these are read from the file on the way. */
static enum status count_rows(struct heat *heat) {
    uint32_t cell = 0;
    for (uint32_t r = 0; r < heat->row_count; r++)
        TRY(arena_take(heat->page->arena, cells_of(heat), sizeof *heat->rows[r].cells, "report",
                       &heat->rows[r].cells));
    for (uint64_t i = 0; i < heat->page->judgement.updates; i++) {
        while (i >= cell_begin(heat, cell + 1))
            cell++;
        for (uint32_t r = 0; r < heat->row_count; r++)
            count_update(heat, &heat->rows[r], i, cell);
    }
    return STATUS_OK;
}

/* Marks the ROWS_SHOWN rows that differ first; they stay in the order of the list. */
static void choose_rows(struct heat *heat) {
    for (uint32_t n = 0; n < ROWS_SHOWN && n < heat->row_count; n++) {
        struct heat_row *best = NULL;
        for (uint32_t i = 0; i < heat->row_count; i++) {
            struct heat_row *row = &heat->rows[i];
            if (!row->shown && (best == NULL || row->first - 1 < best->first - 1)) best = row;
        }
        best->shown =
            1; /* first - 1 of a row that never differs is the largest, so these come last */
    }
}

static enum status open_heat(struct page *page, enum heat_kind kind, struct heat *out) {
    *out = (struct heat){.page = page, .kind = kind};
    name_lists(out);
    TRY(match_names(out));
    TRY(make_rows(out));
    TRY(count_rows(out));
    choose_rows(out);
    return STATUS_OK;
}

/* ---- strips ---- */

/* What a cell stands for: -1 no digest, 0 no update differs, 1 some do, 2 all with a digest do. */
static int cell_state(const struct heat_cell *cell) {
    return cell->known == 0                 ? -1
           : cell->differing == 0           ? 0
           : cell->differing == cell->known ? 2
                                            : 1;
}

/* Draws all cells of one state as one path; neighbours without a gap are one rectangle. */
static void put_cells(struct html *html, const int *states, uint32_t cells, int state) {
    const int apart = cells <= CELLS_APART;
    int open = 0;
    for (uint32_t i = 0, end; i < cells; i = end) {
        end = i + 1;
        while (!apart && end < cells && states[end] == states[i])
            end++;
        if (states[i] != state) continue;
        if (!open++) html_format(html, "<path class=\"s%d\" d=\"", state);
        if (apart)
            html_format(html, "M%u.06 0h.88v1h-.88z", i);
        else
            html_format(html, "M%u 0h%uv1h-%uz", i, end - i, end - i);
    }
    if (open) html_raw(html, "\"/>");
}

static void put_strip(struct html *html, const struct heat *heat, const struct heat_row *row) {
    int states[STRIP_CELLS];
    const uint32_t cells = cells_of(heat);
    for (uint32_t i = 0; i < cells; i++)
        states[i] = cell_state(&row->cells[i]);
    html_format(html,
                "<svg class=\"strip\" viewBox=\"0 0 %u 1\" preserveAspectRatio=\"none\" "
                "aria-hidden=\"true\">",
                cells);
    for (int state = 0; state <= 2; state++)
        put_cells(html, states, cells, state);
    html_raw(html, "</svg>");
}

static void put_row(const struct heat *heat, const struct heat_row *row) {
    struct html *html = &heat->page->html;
    html_format(html, "<tr><th scope=\"row\" class=\"w\">%-.*s", (int)row->name_length, row->name);
    if (row->end - row->from > 1)
        html_format(html, " <span class=\"note\">(%u)</span>", row->end - row->from);
    html_raw(html, "</th><td class=\"f\">");
    if (row->known == 0)
        html_raw(html, "no digest");
    else if (row->first == 0)
        html_raw(html, "never");
    else
        html_format(html, "%ju", row->first);
    html_raw(html, "</td><td class=\"f\">");
    if (row->known > 0) html_format(html, "%ju", row->differing);
    if (row->known > 0 && row->known != heat->page->judgement.updates)
        html_format(html, " of %ju", row->known);
    html_raw(html, "</td><td>");
    put_strip(html, heat, row);
    html_raw(html, "</td></tr>\n");
}

static void put_rows(const struct heat *heat) {
    const int backward =
        heat->kind == HEAT_GRADIENT; /* they are computed from the head to the embedding */
    for (uint32_t n = 0; n < heat->row_count; n++) {
        const struct heat_row *row = &heat->rows[backward ? heat->row_count - 1 - n : n];
        if (row->shown) put_row(heat, row);
    }
}

static void note_rows(const struct heat *heat) {
    struct html *html = &heat->page->html;
    uint32_t lone = 0;
    for (uint32_t i = 0; i < heat->count[0]; i++)
        lone += heat->other[i] == UINT32_MAX ? 1u : 0u;
    if (heat->count[0] > ROWS_SHOWN)
        html_format(html,
                    "<p class=\"note\">%u names, joined by layer (the number behind a name): a row "
                    "differs where one of them does.</p>\n",
                    heat->count[0]);
    if (heat->row_count > ROWS_SHOWN)
        html_format(html,
                    "<p class=\"note\">Capped: %u of %u rows, those that differ first; the trace "
                    "holds all.</p>\n",
                    (unsigned)ROWS_SHOWN, heat->row_count);
    if (lone > 0)
        html_format(html,
                    "<p class=\"note\">%u names of the baseline have no counterpart in the test "
                    "arm and cannot be compared.</p>\n",
                    lone);
}

static const char *const captions[HEAT_KINDS] = {
    "Phases of an update, in loop order", "Activations, in forward order",
    "Gradients before clipping, in backward order", "Parameters after the update"};

/* Writes one of the four tables; there is at least one update. */
static enum status put_heat(struct page *page, enum heat_kind kind) {
    struct html *html = &page->html;
    struct heat heat;
    TRY(open_heat(page, kind, &heat));
    html_format(
        html,
        "<div>\n<table class=\"heat\"><caption>%s</caption>\n<thead><tr><th "
        "scope=\"col\">name</th><th scope=\"col\" class=\"f\">first at</th><th scope=\"col\" "
        "class=\"f\">differ, of %ju</th><th scope=\"col\">updates %ju to %ju</th></tr>"
        "</thead>\n<tbody>\n",
        captions[kind], page->judgement.updates, trace_row(page->run[0], 0)->step,
        trace_row(page->run[0], page->judgement.updates - 1)->step);
    put_rows(&heat);
    html_raw(html, "</tbody></table>\n");
    if (heat.row_count == 0) html_raw(html, "<p class=\"none\">Not recorded.</p>\n");
    note_rows(&heat);
    html_raw(html, "</div>\n");
    return STATUS_OK;
}

static void put_key(struct html *html, uint64_t updates) {
    static const char *const words[] = {"equal, bit for bit", "some of its updates differ",
                                        "differ"};
    html_raw(html, "<p class=\"legend\">");
    for (int state = 0; state <= 2; state++) {
        if (state == 1 && updates <= STRIP_CELLS) continue;
        html_format(html,
                    "<span><svg class=\"swatch\" viewBox=\"0 0 1 1\" preserveAspectRatio=\"none\" "
                    "aria-hidden=\"true\"><path class=\"s%d\" d=\"M0 0h1v1H0z\"/></svg> %s</span> ",
                    state, words[state]);
    }
    html_raw(html, "<span>no cell: no digest recorded</span></p>\n");
    if (updates > STRIP_CELLS)
        html_format(html,
                    "<p class=\"note\">Thinned: each of %d cells stands for several updates; the "
                    "numbers beside it count every one.</p>\n",
                    STRIP_CELLS);
}

static void put_first(struct page *page) {
    struct html *html = &page->html;
    const struct judgement *judgement = &page->judgement;
    if (judgement->updates == 0) {
        html_raw(html, "<p>No update was finished by both arms, so nothing can be compared.</p>\n");
        return;
    }
    if (judgement->first_step < 0) {
        html_raw(html, "<p>No digest differs at any update that both arms finished.</p>\n");
        return;
    }
    html_format(html, "<p>The first difference is at <strong>update %ju</strong>",
                (uintmax_t)judgement->first_step);
    if (judgement->place.structure != NULL && judgement->place.structure[0] != '\0')
        html_format(html, ", where %s", judgement->place.structure);
    if (judgement->first_phase[0] != '\0')
        html_format(html, ", phase <strong>%s</strong>", judgement->first_phase);
    if (judgement->first_tensor[0] != '\0')
        html_format(html, ", <strong>%-s</strong>", judgement->first_tensor);
    html_raw(html, ". Every digest covers all bits of what it names.</p>\n");
}

enum status page_first_differences(struct page *page) {
    page_section(page, "differences", "First differences by layer and update");
    put_first(page);
    if (page->judgement.updates > 0) {
        put_key(&page->html, page->judgement.updates);
        html_raw(&page->html, "<div class=\"figures\">\n");
        for (int kind = 0; kind < HEAT_KINDS; kind++)
            TRY(put_heat(page, (enum heat_kind)kind));
        html_raw(&page->html, "</div>\n");
    }
    page_section_end(page);
    return STATUS_OK;
}
