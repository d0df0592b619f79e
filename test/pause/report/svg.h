/*
 * svg.h
 *	  A figure with a time axis and lanes.
 */
#ifndef REPORT_SVG_H
#define REPORT_SVG_H

#include <stdint.h>
#include <stdio.h>

#include "story.h"

typedef struct figure
{
	FILE	   *out;
	int64_t		t0;				/* left edge */
	int64_t		t1;				/* right edge */
	int64_t		zero;			/* what the axis calls 0 */
	const char *lanes[16];
	int			nlanes;
	int			lane_height;
} figure;

extern const char *const holder_colours[8];

extern void svg_text(FILE *out, const char *text);	/* escaped */
extern double svg_x(const figure *f, int64_t t);
extern int	svg_lane(const figure *f, const char *name);	/* -1: none */
extern void svg_begin(const figure *f, const char *title);
extern void svg_end(const figure *f);
extern void svg_band(const figure *f, int64_t start, int64_t end, const char *class,
					 const char *label, const char *tip);
extern void svg_line(const figure *f, int64_t t, const char *class, const char *label, int row);
extern void svg_bar(const figure *f, int lane, int64_t start, int64_t end, const char *fill,
					const char *label, const char *tip);
extern void svg_stopped(const figure *f, int lane, int64_t start, int64_t end);
extern void svg_mark(const figure *f, int lane, const mark *m);

#endif
