/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What FSDP, torch.distributed.checkpoint, DeepSpeed, Megatron, bitsandbytes and torchao wrote
 * (tests/bench/sharded_layouts.py): it is read, or refused by name with what to do. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "checkpoints/training_folder.h"
#include "tests/checkpoints/helper_checkpoint.h"

#define LAYOUTS TWINSTEP_SOURCE_DIR "/tests/golden/foreign/layouts/"

static void corroborate_read(void **state) {
    (void)state;
    static const struct {
        const char *name, *tail, *prefix;
    } cases[] = {
        {"fsdp1_full", ".pt", ""},
        {"fsdp2_full", ".pt", ""},
        {"dcp_converted", ".pt", ""},
        {"flat_gathered", ".pt", ""},
        {"deepspeed0", "", ""},
        {"deepspeed1_gathered", ".pt", ""},
        {"deepspeed3_gathered", ".pt", ""},
        {"zero_redundancy", ".pt", "module."},
        {"compiled", ".pt", "_orig_mod."},
        {"accelerate_full", NULL, ""},
    };
    static const char *const names[] = {"0.weight", "1.weight", "1.bias"};
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (int k = 1; k <= (cases[i].tail == NULL ? 1 : 2); k++) {
            struct arena arena = ARENA_EMPTY;
            struct training_folder folder;
            char path[1024], wanted[64];
            double lr;
            snprintf(path, sizeof path, LAYOUTS "%s", cases[i].name);
            if (cases[i].tail != NULL)
                snprintf(path, sizeof path, LAYOUTS "%s-%d%s", cases[i].name, k, cases[i].tail);
            if (training_folder_open(path, NULL, &arena, &folder) != STATUS_OK)
                fail_msg("%s", status_text());
            assert_true(folder.rule == TRAINING_ADAM && folder.parameter_count == 3);
            assert_true(training_group_number(&folder.groups[0], "lr", &lr) && lr == 1e-3);
            for (size_t n = 0; n < COUNT_OF(names); n++) {
                const struct training_parameter *parameter = &folder.parameters[n];
                snprintf(wanted, sizeof wanted, "%s%s", cases[i].prefix, names[n]);
                if (parameter->weight == NULL || strcmp(parameter->weight->name, wanted) != 0)
                    fail_msg("%s: parameter %zu is not %s", path, n, wanted);
                assert_true(parameter->has_step && parameter->step == k);
            }
            training_folder_close(&folder);
            arena_close(&arena);
        }
}

static void validate_refused(void **state) {
    (void)state;
    static const char zero[] = "`python -m deepspeed.checkpoint.ds_to_universal --inject_missing_";
    static const char bitsandbytes[] = "got the state of an optimizer of bitsandbytes";
    static const char *const cases[][2] = {
        {"deepspeed1", zero},
        {"deepspeed3", zero},
        {"deepspeed1/mp_rank_00_model_states.pt", zero},
        {"deepspeed1/zero_pp_rank_0_mp_rank_00_optim_states.pt", zero},
        {"deepspeed3/zero_pp_rank_0_mp_rank_00_model_states.pt", zero},
        {"deepspeed3/zero_pp_rank_0_mp_rank_00_optim_states.pt", zero},
        {"universal", "got a universal checkpoint of DeepSpeed, with a file for each tensor"},
        {"flat.pt", "(by flatten_optimizer_state_dict=True): gather.py in docs/CHECKPOINTS.md"},
        {"dtensor.pt", "got opaque \"torch.distributed.tensor.DTensor\": it holds the part of"},
        {"dcp_safetensors", "expected model.safetensors.index.json beside shards"},
        {"accelerate_sharded", "dcp_to_torch FOLDER/pytorch_model_fsdp_0 model.pt"},
        {"accelerate_local", "(LOCAL_STATE_DICT), which nothing puts together"},
        {"megatron", "got that of a run: name one of \"iter_0000001\""},
        {"megatron/iter_0000001", "got a distributed checkpoint of Megatron: convert it with"},
        {"megatron_converted.pt", "got a state of an optimizer under a name of Megatron's own"},
        {"bitsandbytes8.pt", bitsandbytes},
        {"bitsandbytes32.pt", bitsandbytes},
        {"torchao8.pt", "OptimState8bit\": its numbers are quantised"},
        {"whole_module.pt", "got an object of the class torch.nn.modules.container.Sequential"},
        {"whole_objects.pt",
         "model: expected a state dict, got an object of the class "
         "torch.nn.modules.container.Sequential: save what its state_dict() returns, "
         "which torch.load reads with weights_only=True"},
        {"script.pt", "got one of torch.jit.save: save the state_dict()"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        struct training_folder folder;
        char path[1024];
        snprintf(path, sizeof path, LAYOUTS "%s", cases[i][0]);
        const enum status status = training_folder_open(path, NULL, &arena, &folder);
        if (status == STATUS_OK) fail_msg("%s was read", path);
        helper_require(status, STATUS_INPUT, cases[i][1]);
        arena_close(&arena);
    }
}

/* No state of a generator, and nothing that stands where one is expected, keeps a file from being
 * read. */
static void validate_generators(void **state) {
    (void)state;
    static const char *const names[] = {"torch cpu", "python",    "torch cuda[0]", "torch cuda[1]",
                                        "ours",      "of a dict", "numpy"};
    struct arena arena = ARENA_EMPTY;
    struct training_folder folder;
    if (training_folder_open(LAYOUTS "generators.pt", NULL, &arena, &folder) != STATUS_OK)
        fail_msg("%s", status_text());
    assert_int_equal(folder.generator_count, COUNT_OF(names));
    for (size_t i = 0; i < COUNT_OF(names); i++)
        assert_string_equal(folder.generators[i].name, names[i]);
    assert_memory_equal(&folder.generators[0].digest, &folder.generators[4].digest,
                        sizeof(struct digest));
    training_folder_close(&folder);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_read),
        cmocka_unit_test(validate_generators),
        cmocka_unit_test(validate_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
