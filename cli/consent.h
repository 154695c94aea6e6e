/* SPDX-License-Identifier: Apache-2.0
 * What a user agrees to load: --allow-modules and --trusted-modules (docs/PLUGINS.md). A scenario,
 * a trace or a floor file of somebody else may name a module, which is code; so no verb loads one
 * that its user has not agreed to, and a verb without these options loads none. */
#ifndef TWINSTEP_CLI_CONSENT_H
#define TWINSTEP_CLI_CONSENT_H

#include "cli/verb.h"

#define OPTIONS_MODULES                                                                            \
    OPTION("allow-modules", KEY_ALLOW_MODULES, NULL,                                               \
           "Load every module that is named, which runs with all your rights"),                    \
        OPTION("trusted-modules", KEY_TRUSTED_MODULES, "FILE",                                     \
               "Load modules whose SHA-256 stands in FILE, in lines as sha256sum prints them")

/* Asks before any module is loaded; called once, before the verb runs. STATUS_INPUT, with file and
 * line: what stands in the file of --trusted-modules is no digest. */
TWINSTEP_MUST_USE enum status consent_ask(struct cli *cli, const struct options *options);

/* Agrees to everything that this process names: to the module that --module names, and, in the
 * second process of an exact floor, to what the first one was allowed. */
TWINSTEP_MUST_USE enum status consent_give(struct cli *cli);

#endif
