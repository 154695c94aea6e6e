/* SPDX-License-Identifier: Apache-2.0
 * A product whose matrices lie in two bytes and which the library has no allowed way for: some
 * lines of either operand at a time are widened into scratch, the kernel of mode invariant
 * multiplies the carriers, and results go back as they go from a library's sums.
 *
 * Invariant: the bits are those of the same product over carriers. Outputs of a layer do not depend
 * on one another, and a weight's chains continue from piece to piece (law 3). */

/* Lines of a piece. Widened lines of both operands and the sums of a piece take no more of scratch
 * than the least piece of a library's product does (library_scratch_within). */
#define CARRIED_LINES (LIBRARY_PIECE / 2)

/* Writes carriers of a packing's numbers one line behind another; returns where the next piece of
 * scratch begins. */
static char *carried_widen(struct library_pack pack, struct form form, char *to) {
    pack.form = form;
    pack.product = DTYPE_F64;
    pack.type = sizeof(carrier) == sizeof(double) ? DTYPE_F64 : DTYPE_F32;
    pack.to = to;
    pack.pitch = pack.width;
    pack.each = library_each(&pack);
    LAUNCH_ELEMENTS(library_pack_kernel, pack.lines * pack.pitch / pack.each, &pack);
    return to + library_whole(pack.lines * pack.width, sizeof(carrier));
}

/* `lines` rows of an activation from the first-th of the job's list on. */
static struct library_pack carried_rows_of(const struct op_call *call, const struct gemm *job,
                                           const carrier *from, size_t width, size_t stride,
                                           size_t first, size_t lines) {
    struct library_pack pack = {
        .from = from, .lines = lines, .width = width, .stride = stride, .rows = job->rows};
    if (job->rows.index == NULL)
        pack.from = form_at(from, library_form(call, job), first * stride);
    else
        pack.rows.index += first;
    pack.rows.count = (uint32_t)lines;
    return pack;
}

/* Rows `first` on and columns `column` on of a layer's output, or of its input's gradient. */
static void carried_outputs(const struct op_call *call, const struct gemm *job, size_t first,
                            size_t lines, size_t column, size_t columns) {
    const struct form form = library_form(call, job);
    const struct library_pack left =
        carried_rows_of(call, job, job->a, job->K, job->a_stride, first, lines);
    const struct library_pack right = {
        .from = form_at(job->b, form, column * (job->b_transposed ? job->b_stride : 1)),
        .lines = job->b_transposed ? columns : job->K,
        .width = job->b_transposed ? job->K : columns,
        .stride = job->b_stride,
    };
    char *const a = (char *)call->scratch;
    char *const b = carried_widen(left, form, a);
    char *const sums = carried_widen(right, form, b);
    struct gemm piece = *job;
    struct library_scatter scatter = {
        .job = *job,
        .sums = (const accumulator *)sums,
        .stride = columns,
        .first = first,
        .rows = lines,
        .column = column,
        .columns = columns,
        .each = 1,
    };
    piece.M = lines;
    piece.N = columns;
    piece.a = (const carrier *)a;
    piece.a_stride = job->K;
    piece.b = (const carrier *)b;
    piece.b_stride = right.width;
    piece.rows.index = NULL;
    piece.rows.count = (uint32_t)lines;
    piece.out = (carrier *)sums;
    piece.dtype = DTYPE_F32; /* the scatter rounds */
    piece.add = 0;
    piece.narrow = 0;
    linear_plain(&piece);
    LAUNCH_ELEMENTS(library_scatter_kernel, lines * columns, &scatter);
}

/* Terms `first` on of a weight's gradient. */
static void carried_terms(const struct op_call *call, const struct gemm *job, size_t first,
                          size_t lines) {
    const struct form form = library_form(call, job);
    char *const a = (char *)call->scratch;
    char *const b = carried_widen(
        carried_rows_of(call, job, job->a, job->M, job->a_stride, first, lines), form, a);
    struct gemm piece = *job;
    (void)carried_widen(carried_rows_of(call, job, job->b, job->N, job->b_stride, first, lines),
                        form, b);
    piece.K = lines;
    piece.a = (const carrier *)a;
    piece.b = (const carrier *)b;
    piece.a_stride = job->M;
    piece.b_stride = job->N;
    piece.rows.index = NULL;
    piece.rows.count = (uint32_t)lines;
    piece.narrow = 0;
    linear_plain(&piece);
}

static void linear_carried(const struct op_call *call, const struct gemm *job) {
    const size_t count = job->by_terms ? job->K : job->M;
    for (size_t first = 0; first < count; first += CARRIED_LINES) {
        const size_t lines = least(CARRIED_LINES, count - first);
        if (job->by_terms) {
            carried_terms(call, job, first, lines);
            continue;
        }
        for (size_t column = 0; column < job->N; column += CARRIED_LINES)
            carried_outputs(call, job, first, lines, column, least(CARRIED_LINES, job->N - column));
    }
}
