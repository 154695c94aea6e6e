/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What a verdict says of a bit that was flipped in one arm or in both, of traces that a test made
 * by hand: where it flips, and what the log of that update shows. Whole rows. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/evidence/helper_image.h"

#define FLIPS "one bit flips, as of a defective core or memory: update "
#define PLACE                                                                                      \
    ", forward, micro-batch 1, layer 3,\nlinear w, element 7, bit 30 (docs/CORRUPTION.md)."
#define LOG "\nIn the log of that update "
#define UNREAD "\nnothing read the number again, or a rounding took it back."

static const char *const names[] = {"fault", "schedule"};

/* Gives an arm a configuration in which a bit flips; it stays valid until the arm gets another. */
static void flip(struct helper_image *of, int arm, const char *update, const char *layer) {
    static char texts[2][600];
    snprintf(texts[arm], sizeof texts[arm],
             "optimizer.name: sgd\ntask: dpo\nfault.update: %s\nfault.phase: forward\n"
             "fault.micro: 1\nfault.layer: %s\nfault.op: linear\nfault.tensor: \"w\"\n"
             "fault.element: '7'\nfault.bit: 30\n",
             update, layer);
    of->runs[arm].plan.configuration = texts[arm];
}

static double *reals_of(struct helper_image *of, int arm, uint64_t update) {
    return of->runs[arm].records[update - 1].reals;
}

static void expect(struct helper_image *of, uint32_t index, const char *text) {
    helper_image_judge(of, STATUS_OK);
    helper_image_expect(of, ROW_WHY, index, text);
}

static void validate_what_the_log_shows(void **state) {
    (void)state;
    struct helper_image of;
    helper_image_open(&of, 3);
    helper_image_part(&of, 2, 0.5);
    helper_image_causes(&of, names, 1);
    flip(&of, 0, "none", "none");
    flip(&of, 1, "2", "3");
    expect(&of, 0, "in right " FLIPS "2" PLACE LOG "loss and gradient norm are those of left.");
    reals_of(&of, 1, 2)[REAL_LOSS] = 2.5;
    expect(&of, 0,
           "in right " FLIPS "2" PLACE LOG
           "the loss is 2 in left, 2.5 in right, and the gradient norm is that of left.");
    reals_of(&of, 1, 2)[REAL_GRAD_NORM] = 0.75;
    expect(&of, 0,
           "in right " FLIPS "2" PLACE LOG "the loss is 2 in left, 2.5 in right, and the gradient "
           "norm is 0.5 in left, 0.75 in right.");
    reals_of(&of, 1, 2)[REAL_LOSS] = 2.0;
    expect(&of, 0,
           "in right " FLIPS "2" PLACE LOG
           "the loss is that of left, and the gradient norm is 0.5 in left, 0.75 in right.");
    flip(&of, 1, "3", "none"); /* the last update, of which the log shows nothing */
    expect(&of, 0,
           "in right " FLIPS "3, forward, micro-batch 1,\nlinear w, element 7, bit 30 "
           "(docs/CORRUPTION.md)." LOG "loss and gradient norm are those of left.");
    flip(&of, 1, "4", "3"); /* not trained */
    expect(&of, 0, "in right " FLIPS "4" PLACE);
    flip(&of, 1, "12", "3");
    expect(&of, 0, "in right " FLIPS "12" PLACE);
    flip(&of, 1, "0", "3");
    expect(&of, 0, "");
    flip(&of, 1, "2", "3");
    helper_image_causes(&of, names, 2); /* the log may show the other cause */
    expect(&of, 0, "in right " FLIPS "2" PLACE);
    helper_image_close(&of);
}

static void validate_both_arms(void **state) {
    (void)state;
    struct helper_image of;
    helper_image_open(&of, 3);
    helper_image_part(&of, 1, 0.5);
    helper_image_causes(&of, names, 1);
    flip(&of, 0, "2", "3");
    flip(&of, 1, "2", "3");
    expect(&of, 0, "");
    flip(&of, 0, "1", "3");
    expect(&of, 0, "in left " FLIPS "1" PLACE LOG "loss and gradient norm are those of left.");
    expect(&of, 1, "in right " FLIPS "2" PLACE LOG "loss and gradient norm are those of left.");
    flip(&of, 1, "1", "2");
    expect(&of, 1,
           "in right " FLIPS "1, forward, micro-batch 1, layer 2,\nlinear w, element 7, bit 30 "
           "(docs/CORRUPTION.md)." LOG "loss and gradient norm are those of left.");
    flip(&of, 1, "none", "none");
    expect(&of, 0, "in left " FLIPS "1" PLACE LOG "loss and gradient norm are those of left.");
    expect(&of, 1, "");
    helper_image_close(&of);
}

/* Arms that trained alike although a bit flipped in one of them. */
static void validate_flips_without_effect(void **state) {
    (void)state;
    static const char *const sites[] = {"embedding", "layer-0", "logp"};
    static uint8_t digests[2][3][3][RECORD_DIGEST_BYTES]; /* by arm, update and site */
    struct helper_image of;
    helper_image_open(&of, 3);
    flip(&of, 0, "none", "none");
    flip(&of, 1, "2", "3");
    expect(&of, 0,
           "in right " FLIPS "2" PLACE "\nNo loss and no weight of any update shows it:" UNREAD);
    for (int arm = 0; arm < 2; arm++) {
        of.runs[arm].plan.shape.sites = 3;
        of.runs[arm].plan.sites = sites;
        for (int k = 0; k < 3; k++)
            of.runs[arm].records[k].sites = digests[arm][k];
    }
    digests[1][0][0][5] = digests[1][2][0][5] = 1; /* of other updates */
    expect(&of, 0,
           "in right " FLIPS "2" PLACE "\nNo loss and no weight of any update shows it:" UNREAD);
    digests[1][1][2][31] = 1;
    expect(&of, 0,
           "in right " FLIPS "2" PLACE "\nOnly the digest of activation logp in that update shows "
           "it, no loss and no weight of any:" UNREAD);
    digests[1][1][1][0] = 1;
    expect(&of, 0,
           "in right " FLIPS "2" PLACE "\nOnly the digest of activation layer-0 in that update "
           "shows it, no loss and no weight of any:" UNREAD);
    of.runs[1].plan.shape.sites = 2; /* arms that have other activations */
    expect(&of, 0,
           "in right " FLIPS "2" PLACE "\nNo loss and no weight of any update shows it:" UNREAD);
    helper_image_close(&of);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_what_the_log_shows),
        cmocka_unit_test(validate_both_arms),
        cmocka_unit_test(validate_flips_without_effect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
