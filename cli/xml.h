/* SPDX-License-Identifier: Apache-2.0
 * Writes text and attributes of XML, for JUnit files. */
#ifndef TWINSTEP_CLI_XML_H
#define TWINSTEP_CLI_XML_H

#include <stdio.h>

/* Escapes what XML would read as markup. Bytes that are no character of XML 1.0 become U+FFFD. */
void xml_text(FILE *out, const char *text);
/* Writes ` name="text"`, with a blank before it. */
void xml_attribute(FILE *out, const char *name, const char *text);

#endif
