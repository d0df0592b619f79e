/*
 * page.h
 *	  The words and the frame of the report.
 */
#ifndef REPORT_PAGE_H
#define REPORT_PAGE_H

#include <stdio.h>

extern void page_begin(FILE *out, int held, int failed, int not_run);
extern void page_fact(FILE *out, const char *name, const char *value);
extern void page_begin_proofs(FILE *out);
extern void page_begin_proof(FILE *out, int proof);
extern void page_row(FILE *out, char **fields);
extern void page_end_table(FILE *out);
extern void page_end(FILE *out);
extern const char *page_history_title(const char *file);

#endif
