/* SPDX-License-Identifier: Apache-2.0
 * The names, units and long names of every column, in the order of the enums in record.h; and the
 * memory of records. */
#include "determinism/record.h"

#include <stddef.h>
#include <string.h>

#include "base/arena.h"

const struct record_column record_reals[RECORD_REALS] = {
    [REAL_LOSS] = {"loss", "nat", "loss of the update"},
    [REAL_LOGP_CHOSEN] = {"logp_chosen", "nat", "mean log-probability, chosen"},
    [REAL_LOGP_REJECTED] = {"logp_rejected", "nat", "mean log-probability, rejected"},
    [REAL_REWARD_CHOSEN] = {"reward_chosen", "nat", "mean implicit reward, chosen"},
    [REAL_REWARD_REJECTED] = {"reward_rejected", "nat", "mean implicit reward, rejected"},
    [REAL_REWARD_MARGIN] = {"reward_margin", "nat", "mean reward of chosen less rejected"},
    [REAL_REWARD_ACCURACY] = {"reward_accuracy", "1", "share of pairs with a margin above 0"},
    [REAL_GRAD_NORM] = {"grad_norm", "nat", "gradient norm before clipping"},
    [REAL_CLIP_COEF] = {"clip_coef", "1", "factor that clipping applied"},
    [REAL_UPDATE_NORM] = {"update_norm", "1", "distance the parameters moved in the update"},
    [REAL_PARAM_NORM] = {"param_norm", "1", "norm of the parameters after the update"},
    [REAL_TRAVEL] = {"travel", "1", "distance of the parameters from their start"},
    [REAL_UPDATE_SURVIVAL] = {"update_survival", "1", "share of stored weights whose bits changed"},
    [REAL_LOSS_SCALE] = {"loss_scale", "1", "factor on the loss of this update's gradients"},
    [REAL_GRAD_TAKEN] = {"grad_norm_taken", "1",
                         "norm of the gradient that the first moment took in, read back from it"},
    [REAL_GRAD_TAKEN_ERROR] = {"grad_norm_taken_error", "1",
                               "bound of the error of grad_norm_taken from rounding"},
};

const struct record_column record_integers[RECORD_INTEGERS] = {
    [INTEGER_TOKENS] = {"tokens", "tokens", "label tokens of the update"},
    [INTEGER_SKIPPED] = {"skipped", "1", "1 when the optimizer did not run"},
    [INTEGER_EPOCH] = {"epoch", "1", "epoch of the update"},
    [INTEGER_COUNTER] = {"counter", "updates", "update counter n at the end of the update"},
    [INTEGER_OPTIMIZER_T] = {"optimizer_t", "updates", "step count of the optimizer"},
};

const struct record_column record_digests[RECORD_DIGESTS] = {
    [DIGEST_BATCH] = {"digest_batch", "1", "digest of token ids and targets"},
    [DIGEST_RNG] = {"digest_rng", "1", "digest of the ledger of random draws"},
    [DIGEST_WEIGHTS] = {"digest_weights", "1",
                        "digest of parameters, masters and optimizer slots after the update"},
    [DIGEST_LR] = {"digest_lr", "1", "digest of the learning rate that each tensor's update used"},
    [DIGEST_STATE] = {"digest_state", "1", "digest of the training state after the update"},
    [DIGEST_ROOT] = {"digest_root", "1", "digest of the run up to and with this update"},
};

const struct record_column record_groups[RECORD_GROUPS] = {
    [GROUP_LR_APPLIED] = {"lr_applied", "1", "learning rate the optimizer used"},
    [GROUP_LR_LOGGED] = {"lr_logged", "1", "learning rate the loop would have printed"},
    [GROUP_LR_READBACK] = {"lr_readback", "1", "learning rate estimated from the weights"},
    [GROUP_LR_ERROR] = {"lr_readback_error", "1",
                        "bound of the error of lr_readback from rounding"},
    [GROUP_WD_APPLIED] = {"wd_applied", "1", "weight decay the optimizer used"},
    [GROUP_WD_READBACK] = {"wd_readback", "1",
                           "weight decay outside of the gradient, estimated from the weights"},
    [GROUP_WD_ERROR] = {"wd_readback_error", "1",
                        "bound of the error of wd_readback from rounding"},
};

const struct record_column record_tensors[RECORD_TENSORS] = {
    [TENSOR_GRAD_NORM] = {"grad_norm", "nat", "gradient norm of the tensor"},
    [TENSOR_UPDATE_NORM] = {"update_norm", "1", "distance the tensor moved in the update"},
};

const struct record_column record_tensor_digests[RECORD_TENSOR_DIGESTS] = {
    [TENSOR_DIGEST_GRADIENT] = {"digest_gradient", "1",
                                "digest of the closed gradient, before clipping"},
    [TENSOR_DIGEST_PARAMETER] = {"digest_parameter", "1", "digest of the tensor after the update"},
};

const struct record_column record_phases[RECORD_PHASES] = {
    [PHASE_PLACE] = {"place", "1", "place of the phase's first event in the update, -1 not seen"},
};

const struct record_column record_micros[RECORD_MICROS] = {
    [MICRO_LOSS] = {"loss", "nat", "share of the micro-batch in the loss of the update"},
    [MICRO_TOKENS] = {"tokens", "tokens", "label tokens of the micro-batch"},
};

const struct record_column record_ledgers[RECORD_LEDGERS] = {
    [LEDGER_WORDS] = {"words", "words", "random words the consumer drew in the update"},
};

const struct record_column record_places[RECORD_PLACES] = {
    [PLACE_SEED] = {"seed", "1", "seed of the stream before the update"},
    [PLACE_CLOCK] = {"clock", "1", "updates the stream was drawn for, or offset in words"},
};

const struct record_column record_rank_digests[RECORD_RANK_DIGESTS] = {
    [RANK_DIGEST] = {"digest", "1", "digest of the rank's weights and slots after the update"},
};

const struct record_column record_ranks[RECORD_RANKS] = {
    [RANK_FIRST_TENSOR] = {"first_tensor", "1",
                           "index of the first tensor that differs from rank 0's, -1 none"},
};

const struct record_column record_pairs[RECORD_PAIRS] = {
    [PAIR_DISTANCE] = {"distance", "1", "distance |a - b| of the parameters"},
    [PAIR_DISTANCE_SHARE] = {"distance_share", "1", "distance over the travel of a"},
    [PAIR_UPDATE_COSINE] = {"update_cosine", "1", "cosine of the two updates"},
    [PAIR_UPDATE_RATIO] = {"update_ratio", "1", "norm of the update of b over that of a"},
    [PAIR_PROBE_KL] = {"probe_kl", "nat", "mean KL(a || b) on the probe batch"},
    [PAIR_PROBE_TOP1] = {"probe_top1", "1", "share of probe positions with equal arg max"},
    [PAIR_PROBE_ERROR] = {"probe_error", "1", "mean exp|logp_a - logp_b| of the probe labels"},
};

const struct record_column record_pair_integers[RECORD_PAIR_INTEGERS] = {
    [PAIR_TENSORS_DIFFERING] = {"tensors_differing", "1", "number of tensors that differ"},
    [PAIR_FIRST_TENSOR] = {"first_tensor", "1", "index of the first differing tensor, -1 none"},
    [PAIR_MAX_ULP] = {"max_ulp", "ulp", "largest distance in units of the last place"},
};

#define ARRAY(member, axis)                                                                        \
    {                                                                                              \
        offsetof(struct record, member), offsetof(struct record_shape, axis),                      \
            sizeof(*((struct record *)0)->member)                                                  \
    }

/* The arrays of a record: where it points to each, where a shape holds its length, and how large an
 * entry is. */
static const struct {
    size_t pointer, length, entry;
} arrays[] = {
    ARRAY(groups, groups),      ARRAY(tensors, tensors),     ARRAY(tensor_digests, tensors),
    ARRAY(phases, phases),      ARRAY(phase_places, phases), ARRAY(sites, sites),
    ARRAY(micros, micros),      ARRAY(ledger, consumers),    ARRAY(places, streams),
    ARRAY(rank_digests, ranks), ARRAY(ranks, ranks),
};

enum status record_take(struct arena *arena, const struct record_shape *shape, uint64_t count,
                        struct record *records) {
    for (size_t a = 0; a < COUNT_OF(arrays); a++) {
        uint32_t length;
        char *entries;
        memcpy(&length, (const char *)shape + arrays[a].length, sizeof length);
        TRY(arena_take(arena, count * length, arrays[a].entry, "records", &entries));
        for (uint64_t i = 0; i < count; i++, entries += length * arrays[a].entry)
            memcpy((char *)&records[i] + arrays[a].pointer, &entries, sizeof entries);
    }
    return STATUS_OK;
}

/* What stands in a record before its arrays. */
#define SCALARS offsetof(struct record, groups)

static size_t bytes_of(const struct record_shape *shape, size_t array) {
    uint32_t length;
    memcpy(&length, (const char *)shape + arrays[array].length, sizeof length);
    return length * arrays[array].entry;
}

size_t record_packed(const struct record_shape *shape) {
    size_t bytes = SCALARS;
    for (size_t a = 0; a < COUNT_OF(arrays); a++)
        bytes += bytes_of(shape, a);
    return bytes;
}

void record_pack(const struct record_shape *shape, const struct record *record,
                 unsigned char *out) {
    memcpy(out, record, SCALARS);
    out += SCALARS;
    for (size_t a = 0; a < COUNT_OF(arrays); a++) {
        const size_t bytes = bytes_of(shape, a);
        const void *entries;
        memcpy(&entries, (const char *)record + arrays[a].pointer, sizeof entries);
        if (bytes > 0) memcpy(out, entries, bytes);
        out += bytes;
    }
}

void record_unpack(const struct record_shape *shape, const unsigned char *bytes,
                   struct record *record) {
    memcpy(record, bytes, SCALARS);
    bytes += SCALARS;
    for (size_t a = 0; a < COUNT_OF(arrays); a++) {
        const size_t size = bytes_of(shape, a);
        void *entries;
        memcpy(&entries, (const char *)record + arrays[a].pointer, sizeof entries);
        if (size > 0) memcpy(entries, bytes, size);
        bytes += size;
    }
}

int record_equal_roots(const struct record *a, const struct record *b) {
    return memcmp(a->digests[DIGEST_ROOT], b->digests[DIGEST_ROOT], RECORD_DIGEST_BYTES) == 0;
}

int record_has_digest(const uint8_t *digest) {
    static const uint8_t zero[RECORD_DIGEST_BYTES] = {0};
    return memcmp(digest, zero, sizeof zero) != 0;
}
