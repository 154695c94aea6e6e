/* SPDX-License-Identifier: Apache-2.0
 * A product whose activations lie in two bytes and which the library has no allowed way for: some
 * lines at a time are widened into scratch, the kernel of mode invariant multiplies the carriers,
 * and results go back as they go from a library's sums.
 *
 * Invariant: the bits are those of the same product over carriers. Rows of a layer's output do not
 * depend on one another, and a weight's chains continue from piece to piece (law 3). */

/* Lines of a piece. Widened lines of both operands, or of one and of C, take no more of scratch
 * than the least piece of a library's product does (library_scratch_within). */
#define CARRIED_LINES (LIBRARY_PIECE / 2)

/* Writes carriers of `lines` listed lines one behind another; returns where the next piece of
 * scratch begins. */
static char *carried_widen(const struct op_call *call, const struct gemm *job, unsigned which,
                           size_t first, size_t lines, char *to) {
    const int left = which == GEMM_A;
    const struct form form = library_form(call, job, which);
    const size_t stride = left ? job->a_stride : job->b_stride;
    struct library_pack pack = {
        .from = left ? job->a : job->b,
        .form = form,
        .lines = lines,
        .width = left && !job->by_terms ? job->K
                 : left                 ? job->M
                                        : job->N,
        .stride = stride,
        .rows = job->rows,
        .product = DTYPE_F64,
        .type = sizeof(carrier) == sizeof(double) ? DTYPE_F64 : DTYPE_F32,
        .to = to,
    };
    if (job->rows.index == NULL)
        pack.from = form_at(pack.from, form, first * stride);
    else
        pack.rows.index += first;
    pack.rows.count = (uint32_t)lines;
    pack.pitch = pack.width;
    pack.each = library_each(&pack);
    LAUNCH_ELEMENTS(library_pack_kernel, lines * pack.pitch / pack.each, &pack);
    return to + library_whole(lines * pack.width, sizeof(carrier));
}

/* Rows `first` on of a layer's output, or of its input's gradient. */
static void carried_rows(const struct op_call *call, const struct gemm *job, size_t first,
                         size_t lines) {
    char *const a = (char *)call->scratch;
    char *const sums = carried_widen(call, job, GEMM_A, first, lines, a);
    struct gemm piece = *job;
    struct library_scatter scatter = {
        .job = *job,
        .sums = (const accumulator *)sums,
        .stride = job->N,
        .first = first,
        .rows = lines,
        .columns = job->N,
        .each = 1,
    };
    piece.M = lines;
    piece.a = (const carrier *)a;
    piece.a_stride = job->K;
    piece.rows.index = NULL;
    piece.rows.count = (uint32_t)lines;
    piece.out = (carrier *)sums;
    piece.add = 0;
    piece.narrow = 0;
    linear_plain(&piece);
    LAUNCH_ELEMENTS(library_scatter_kernel, lines * job->N, &scatter);
}

/* Terms `first` on of a weight's gradient. */
static void carried_terms(const struct op_call *call, const struct gemm *job, size_t first,
                          size_t lines) {
    char *const a = (char *)call->scratch;
    char *const b = carried_widen(call, job, GEMM_A, first, lines, a);
    struct gemm piece = *job;
    (void)carried_widen(call, job, GEMM_B, first, lines, b);
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
        if (job->by_terms)
            carried_terms(call, job, first, lines);
        else
            carried_rows(call, job, first, lines);
    }
}
