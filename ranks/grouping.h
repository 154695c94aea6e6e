/* SPDX-License-Identifier: Apache-2.0
 * In which order collectives add the terms of several ranks: pure functions of integers.
 *
 * A collective that sums P vectors adds the P terms of an element in some grouping, and floats tell
 * groupings apart. Each algorithm here says which grouping an element gets; it moves no data and
 * adds nothing (ranks/join.h does). Addition is commutative, so of a term's place only the grouping
 * counts; where a library adds its own term first or last, the order here is the library's.
 *
 * Which library uses which algorithm, and how that is known, is the table of docs/RANKS.md: most
 * rows are held against recordings of the library (tests/ranks/), those of NCCL are read from its
 * source. What adds in order of arrival, or in a switch of the network, has no such function and no
 * word here. Invariant: an order holds each rank once, and P - 1 additions. */
#ifndef TWINSTEP_RANKS_GROUPING_H
#define TWINSTEP_RANKS_GROUPING_H

#include <stdint.h>

#include "base/dtype.h"
#include "base/status.h"

#define GROUPING_RANKS 1024u
#define GROUPING_ADD 0xffffu /* among the terms: add the two results before it */
#define GROUPING_DEPTH 32u   /* no order holds more results at once that wait to be added */

/* p is the largest power of two that is not above P. */
enum grouping_algorithm {
    /* Rank P-1 first, then P-2, down to 0. */
    GROUPING_LINEAR,
    /* Neighbours first: a balanced tree over p values, of which the first P-p are pairs of ranks.
     */
    GROUPING_RECURSIVE,
    /* P blocks; block c begins at rank c and goes up, round the ring. */
    GROUPING_RING,
    /* The same blocks; block c begins at rank c+1, so that rank c, whose block it is, comes last.
     */
    GROUPING_RING_SCATTER,
    /* The values of GROUPING_RECURSIVE, but those p/2 apart first, then those p/4 apart. */
    GROUPING_HALVING,
    /* P chunks of whole segments; chunk c begins at rank c-1 and goes down, rank c comes last. */
    GROUPING_GLOO,
    /* Per channel, loops of P chunks; chunk c begins at position c+1 of the ring and goes up. */
    GROUPING_NCCL_RING,
    /* P equal blocks; the block of the rank at position c begins at position c+1 and goes up. */
    GROUPING_NCCL_RING_SCATTER,
    /* Chains inside nodes, and two binary trees over the nodes. */
    GROUPING_NCCL_TREE,
    GROUPING_COUNT
};

/* Which ranks of a node the children of other nodes hang on (graph search of NCCL): both on the
 * head; the first on the second rank; both on the second rank. */
enum grouping_pattern { GROUPING_PATTERN_TREE, GROUPING_PATTERN_BALANCED, GROUPING_PATTERN_SPLIT };

/* One call of a collective. The members behind `width` are for the algorithms of NCCL, which takes
 * them from the machine's topology and its tuner; 0 and NULL elsewhere. */
struct grouping_call {
    enum grouping_algorithm algorithm;
    uint32_t ranks;      /* P: 1 to GROUPING_RANKS */
    uint64_t count;      /* elements of the vector that this call reduces: 1 to 2^48 */
    uint32_t width;      /* bytes of an element on the wire: 1, 2, 4 or 8 */
    uint64_t part_first; /* elements that the first channel takes: countLo of NCCL's trace */
    uint64_t part;       /* that each further one takes: countMid; the last takes the rest */
    uint64_t chunk;      /* bytes of a chunk: chunkBytes; nccl-ring only */
    uint32_t channels;   /* of the communicator, two at least; nccl-tree only */
    uint32_t node;       /* ranks of a node; nccl-tree only */
    enum grouping_pattern pattern; /* nccl-tree only */
    const uint16_t *places; /* the rank at each position of the ring, or of the chains of all nodes
                             * one behind another; NULL: rank = position */
};

/* A run of elements that have one grouping. */
struct grouping_run {
    uint64_t start, end;                    /* elements start .. end-1 */
    uint32_t length;                        /* 2P - 1 */
    uint16_t terms[2 * GROUPING_RANKS - 1]; /* postfix: ranks and GROUPING_ADD */
};

/* The word of an algorithm: "linear", "recursive", "ring", "ring-scatter", "halving", "gloo",
 * "nccl-ring", "nccl-ring-scatter", "nccl-tree". */
const char *grouping_name(enum grouping_algorithm algorithm);

/* What of the library itself was recorded and compared with the algorithm, in words: "f32 on 2 to 8
 * ranks". NULL: nothing was, and the grouping was read in the library's source. */
const char *grouping_recorded(enum grouping_algorithm algorithm);
/* Whether that covers the dtype on so many ranks. Where it does not, the same rule is used. */
int grouping_is_recorded(enum grouping_algorithm algorithm, uint32_t ranks, enum dtype dtype);

/* STATUS_INPUT: a number of the call is out of its range, or one that the algorithm needs is not
 * there; the text says which. */
TWINSTEP_MUST_USE enum status grouping_check(const struct grouping_call *call);

/* Fills `out` with the run that `element` belongs to. The call must have passed grouping_check(),
 * and element < count. All runs of a call: begin with element 0, go on with out->end. */
void grouping_of(const struct grouping_call *call, uint64_t element, struct grouping_run *out);

/* Writes the grouping as people write sums: "1 + 2 + 0", "0 + 1 + (2 + 3)". It is read from left to
 * right, as C and Python do. `out` has GROUPING_TEXT bytes. */
#define GROUPING_TEXT 16384u
void grouping_text(const struct grouping_run *run, char *out);

enum grouping_collective { GROUPING_ALL_REDUCE, GROUPING_REDUCE_SCATTER };

/* The algorithm that Open MPI 4.1 really uses when coll_tuned_allreduce_algorithm forces `number`
 * (1, 3, 4, 5 or 6), or coll_tuned_reduce_scatter_algorithm (2, 3 or 4): with few elements it takes
 * another one. STATUS_INPUT: a number whose grouping is not known here. */
TWINSTEP_MUST_USE enum status grouping_of_open_mpi(enum grouping_collective collective,
                                                   uint32_t number, uint32_t ranks, uint64_t count,
                                                   enum grouping_algorithm *out);

#endif
