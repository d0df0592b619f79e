/*
 * figures.h
 *	  The pictures of each proof.
 */
#ifndef REPORT_FIGURES_H
#define REPORT_FIGURES_H

#include <jansson.h>
#include <stdio.h>

#include "story.h"

extern void figure_pause(FILE *out, const story *s);
extern void figure_partition(FILE *out, const story *s);
extern void figure_restore(FILE *out, const story *s);
extern void figure_storm(FILE *out, json_t *events, const story *s);
extern void figure_legend(FILE *out);

#endif
