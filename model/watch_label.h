/* SPDX-License-Identifier: Apache-2.0
 * The names of ops and tensors that a watch shows: one enum, one table of the words that are
 * printed for it.
 *
 * Whoever asks which op a view is of compares labels; whoever prints one takes its text. Parameters
 * and optimizer slots have names of their own, which no label stands for.
 * Invariant: a label's text is printed in reports and JSON, so it never changes. */
#ifndef TWINSTEP_MODEL_WATCH_LABEL_H
#define TWINSTEP_MODEL_WATCH_LABEL_H

#define WATCH_LABEL_TABLE(ROW)                                                                     \
    /* ops of the model: modules by their names in transformers, and what is between them */       \
    ROW(EMBED_TOKENS, "embed_tokens")                                                              \
    ROW(Q_PROJ, "q_proj")                                                                          \
    ROW(K_PROJ, "k_proj")                                                                          \
    ROW(V_PROJ, "v_proj")                                                                          \
    ROW(O_PROJ, "o_proj")                                                                          \
    ROW(Q_NORM, "q_norm")                                                                          \
    ROW(K_NORM, "k_norm")                                                                          \
    ROW(INPUT_NORM, "input_layernorm")                                                             \
    ROW(POST_ATTENTION_NORM, "post_attention_layernorm")                                           \
    ROW(POST_MLP_NORM, "post_feedforward_layernorm")                                               \
    ROW(GATE_PROJ, "gate_proj")                                                                    \
    ROW(UP_PROJ, "up_proj")                                                                        \
    ROW(DOWN_PROJ, "down_proj")                                                                    \
    ROW(NORM, "norm")                                                                              \
    ROW(LM_HEAD, "lm_head")                                                                        \
    ROW(ROTARY, "rotary")                                                                          \
    ROW(ATTENTION, "attention")                                                                    \
    ROW(RESIDUAL, "residual")                                                                      \
    ROW(SWIGLU, "swiglu")                                                                          \
    ROW(LOG_SOFTMAX, "log_softmax")                                                                \
    ROW(EMBEDDING_DROPOUT, "embedding dropout")                                                    \
    ROW(ATTENTION_DROPOUT, "attention dropout")                                                    \
    ROW(DROPOUT_A, "dropout after attention")                                                      \
    ROW(DROPOUT_B, "dropout after MLP")                                                            \
    /* what these ops write */                                                                     \
    ROW(OUTPUT, "output")                                                                          \
    ROW(INPUT_GRADIENT, "input gradient")                                                          \
    ROW(WEIGHT_GRADIENT, "weight gradient")                                                        \
    ROW(SECOND_WEIGHT_GRADIENT, "weight gradient, second use")                                     \
    ROW(BIAS_GRADIENT, "bias gradient")                                                            \
    ROW(SEED_AND_OFFSET, "seed and offset")                                                        \
    ROW(MASK, "mask")                                                                              \
    ROW(Q, "Q")                                                                                    \
    ROW(K, "K")                                                                                    \
    ROW(DQ, "dQ")                                                                                  \
    ROW(DK, "dK")                                                                                  \
    ROW(DV, "dV")                                                                                  \
    ROW(DGATE, "dgate")                                                                            \
    ROW(DUP, "dup")                                                                                \
    ROW(AFTER_ATTENTION, "after attention")                                                        \
    ROW(AFTER_MLP, "after MLP")                                                                    \
    ROW(GRADIENT_AFTER_ATTENTION, "gradient after attention")                                      \
    ROW(GRADIENT_OF_INPUT, "gradient of the layer's input")                                        \
    ROW(LOGITS, "logits")                                                                          \
    ROW(GRADIENT_OF_LOGITS, "gradient of the logits")                                              \
    ROW(MAXIMUM, "maximum")                                                                        \
    ROW(SUM, "sum of exponentials")                                                                \
    ROW(LOGP, "log-prob of the target")                                                            \
    /* what the phases of an update show */                                                        \
    ROW(ROTARY_TABLE, "rotary table")                                                              \
    ROW(COSINE, "cosine")                                                                          \
    ROW(SINE, "sine")                                                                              \
    ROW(MASTER, "master")                                                                          \
    ROW(PARAMETER, "parameter")                                                                    \
    ROW(COMPUTE_COPY, "compute copy")                                                              \
    ROW(DATA, "data")                                                                              \
    ROW(TOKENS, "tokens")                                                                          \
    ROW(TARGETS, "targets")                                                                        \
    ROW(REFERENCE, "reference")                                                                    \
    ROW(BOTH_LOGPS, "log-probs of both sides")                                                     \
    ROW(LOSS, "loss")                                                                              \
    ROW(COEFFICIENT, "coefficient")                                                                \
    ROW(LOSS_OF_UPDATE, "loss of the update")                                                      \
    ROW(RANDOM_NUMBERS, "random numbers")                                                          \
    ROW(WORDS_DRAWN, "words drawn")                                                                \
    ROW(GRADIENT, "gradient")                                                                      \
    ROW(UNSCALED_GRADIENT, "unscaled gradient")                                                    \
    ROW(CLIPPED_GRADIENT, "clipped gradient")                                                      \
    ROW(GRADIENT_TAKEN, "gradient taken")                                                          \
    ROW(CLIP, "clip")                                                                              \
    ROW(GRADIENT_NORM, "gradient norm")                                                            \
    ROW(OPTIMIZER, "optimizer")                                                                    \
    ROW(STEPS_COUNTED, "steps counted")                                                            \
    ROW(LR_APPLIED, "LR applied")                                                                  \
    ROW(WEIGHT_DECAY, "weight decay")                                                              \
    ROW(SCHEDULE, "schedule")                                                                      \
    ROW(LR, "LR")                                                                                  \
    ROW(LOG, "log")                                                                                \
    ROW(LR_LOGGED, "LR logged")                                                                    \
    ROW(COUNT, "count")                                                                            \
    ROW(UPDATES_COUNTED, "updates counted")                                                        \
    ROW(ZERO, "zero")                                                                              \
    ROW(GRADIENTS_LEFT, "gradients left")

#define WATCH_LABEL_ENUM(name, text) LABEL_##name,
enum watch_label { LABEL_OWN = 0, WATCH_LABEL_TABLE(WATCH_LABEL_ENUM) };
#undef WATCH_LABEL_ENUM

struct watch_name {
    enum watch_label label; /* LABEL_OWN: the name is a parameter's or a slot's */
    const char *text;       /* static, but for such a name, which lives as long as its run */
};

/* The name of a label. */
struct watch_name watch_named(enum watch_label label);

/* A name that no label stands for. */
struct watch_name watch_own(const char *text);

int watch_name_equal(struct watch_name a, struct watch_name b);

#endif
