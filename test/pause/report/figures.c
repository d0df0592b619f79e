/*
 * figures.c
 *	  The timelines of the proofs by pause, by partition and by restore.
 */
#include <stdlib.h>
#include <string.h>

#include "figures.h"
#include "svg.h"

#define SECOND INT64_C(1000000)

/* One stable colour a name, in order of appearance. */
static const char *
colour_of(const char **names, int *n, const char *who)
{
	for (int i = 0; i < *n; i++)
		if (strcmp(names[i], who) == 0)
			return holder_colours[i % 8];
	if (*n < 16)
		names[(*n)++] = who;
	return holder_colours[(*n - 1) % 8];
}

static void
draw_hold(const figure *f, int lane, const hold *h, const char *fill)
{
	char		tip[300];
	char		label[100];

	snprintf(tip, sizeof tip, "%s holds %s from %.3f to %.3f s, %s; %s", h->who, h->lock,
			 (h->start - f->zero) / 1e6, (h->end - f->zero) / 1e6, token_words(h->token),
			 h->lapsed ? "until its lease lapsed or was dropped" : "then released it");
	snprintf(label, sizeof label, "holds the lock: %s", token_words(h->token));
	svg_bar(f, lane, h->start, h->end, fill, label, tip);
}

/* After a lapse, until it learned: it still believes that it holds the lock. */
static void
draw_belief(const figure *f, int lane, const hold *h)
{
	if (!h->lapsed || h->knows <= h->end)
		return;
	svg_bar(f, lane, h->end, h->knows, "#b5504c", "believes that it still holds the lock",
			"the lease is over and another holder was granted the lock; this one cannot know");
}

void
figure_pause(FILE *out, const story *s)
{
	figure		f = {out, s->first, s->last + SECOND / 2, s->first,
	{"holder", "successor"}, 2, 64};

	for (int i = 0; i < s->nspans; i++)
		if (strcmp(s->spans[i].what, "stop") == 0)
			f.zero = s->spans[i].start;
	f.t0 = f.zero - 2 * SECOND;
	fputs("<p class='caption'>At 0 s the holder is stopped; while hatched, it does not run.</p>", out);
	svg_begin(&f, "which client held the lock, which was stopped, and which writes were accepted");
	for (int i = 0; i < s->nspans; i++)
		if (strcmp(s->spans[i].what, "stop") == 0)
			svg_stopped(&f, svg_lane(&f, s->spans[i].who), s->spans[i].start, s->spans[i].end);
	for (int i = 0; i < s->nholds; i++)
	{
		int			lane = svg_lane(&f, s->holds[i].who);

		draw_hold(&f, lane, &s->holds[i], lane == 0 ? "#4c78a8" : "#5e9c76");
		draw_belief(&f, lane, &s->holds[i]);
	}
	for (int i = 0; i < s->nmarks; i++)
		svg_mark(&f, svg_lane(&f, s->marks[i].who), &s->marks[i]);
	svg_end(&f);
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *) a, *(const char *const *) b);
}

static void
lanes_by_lock(figure *f, const story *s)
{
	for (int i = 0; i < s->nholds; i++)
		if (svg_lane(f, s->holds[i].lock) < 0 && f->nlanes < 16)
			f->lanes[f->nlanes++] = s->holds[i].lock;
	qsort(f->lanes, f->nlanes, sizeof *f->lanes, compare_names);
}

static void
draw_locks(const figure *f, const story *s, const char **names, int *n)
{
	for (int i = 0; i < s->nholds; i++)
		if (s->holds[i].end >= f->t0 && s->holds[i].start <= f->t1)
			draw_hold(f, svg_lane(f, s->holds[i].lock), &s->holds[i],
					  colour_of(names, n, s->holds[i].who));
}

static void
draw_cuts(const figure *f, const story *s)
{
	for (int i = 0; i < s->nspans; i++)
		if (strcmp(s->spans[i].what, "cut") == 0)
			svg_band(f, s->spans[i].start, s->spans[i].end, "cut", "leader cut off",
					 "no process can reach the leader of the quorum");
}

/* The whole run, then each cut from close by. */
void
figure_partition(FILE *out, const story *s)
{
	figure		f = {out, s->first, s->last, s->first, {NULL}, 0, 30};
	const char *names[16];
	int			n = 0;

	lanes_by_lock(&f, s);
	fputs("<p class='caption'>The whole run: each lane is a lock, each bar a holder, coloured by client.</p>", out);
	svg_begin(&f, "which client held which lock, and when the leader was cut off");
	draw_cuts(&f, s);
	draw_locks(&f, s, names, &n);
	svg_end(&f);
	f.lane_height = 40;
	for (int i = 0; i < s->nspans; i++)
	{
		if (strcmp(s->spans[i].what, "cut") != 0)
			continue;
		f.t0 = s->spans[i].start - SECOND / 4;
		f.t1 = f.t0 + 2 * SECOND;
		fprintf(out, "<p class='caption'>Around the cut at %.1f s.</p>", (s->spans[i].start - f.zero) / 1e6);
		svg_begin(&f, "around one cut");
		draw_cuts(&f, s);
		draw_locks(&f, s, names, &n);
		for (int m = 0; m < s->nmarks; m++)
			svg_mark(&f, svg_lane(&f, s->marks[m].lock), &s->marks[m]);
		svg_end(&f);
	}
}

/* Until the write of before the disaster was refused. */
static int64_t
end_of_aftermath(const story *s, int64_t t)
{
	for (int i = 0; i < s->nmarks; i++)
		if (s->marks[i].kind == MARK_REFUSED && s->marks[i].t > t)
			return s->marks[i].t + SECOND / 2;
	return t + SECOND;
}

/* Each disaster from close by: what was held, the sealed time, the first grant after. */
void
figure_restore(FILE *out, const story *s)
{
	figure		f = {out, s->first, s->last, s->first, {NULL}, 0, 34};
	const char *names[16];
	int			n = 0;

	lanes_by_lock(&f, s);
	for (int i = 0; i < s->nspans; i++)
	{
		if (strcmp(s->spans[i].what, "sealed") != 0)
			continue;
		f.t0 = s->spans[i].start - SECOND;
		f.t1 = end_of_aftermath(s, s->spans[i].end);
		fputs("<p class='caption'>", out);
		svg_text(out, s->spans[i].why);
		fputs("</p>", out);
		svg_begin(&f, s->spans[i].why);
		svg_band(&f, s->spans[i].start, s->spans[i].end, "sealed", "", "nothing is granted, renewed or called valid");
		svg_line(&f, s->spans[i].start, "event", "cluster destroyed", 0);
		draw_locks(&f, s, names, &n);
		for (int m = 0; m < s->nmoments; m++)
		{
			if (strcmp(s->moments[m].what, "restore") == 0)
				svg_line(&f, s->moments[m].t, "event", "snapshot restored", 1);
			else if (strcmp(s->moments[m].what, "epoch") == 0)
				svg_line(&f, s->moments[m].t, "event", "epoch advanced", 0);
		}
		for (int m = 0; m < s->nmarks; m++)
			svg_mark(&f, svg_lane(&f, s->marks[m].lock), &s->marks[m]);
		svg_end(&f);
	}
}

void
figure_legend(FILE *out)
{
	figure		f = {out, 0, 100, 0, {NULL}, 0, 0};
	static const struct
	{
		mark_kind	kind;
		const char *words;
	}			entries[] = {
		{MARK_ACCEPTED, "write accepted"},
		{MARK_REFUSED, "write refused (LF001)"},
		{MARK_PRESENT, "token presented"},
		{MARK_FENCE, "onFence"},
		{MARK_ENDED, "found its transaction ended"},
		{MARK_DENIED, "not granted: sealed"},
	};

	fputs("<p class='legend'>", out);
	for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
	{
		mark		m = {entries[i].kind, 0, "", "", "", ""};

		/* the marks' own drawing, moved into a small picture */
		fputs("<span><svg class='key' viewBox='121 37 18 18'>", out);
		svg_mark(&f, 0, &m);
		fprintf(out, "</svg>%s</span>", entries[i].words);
	}
	fputs("</p>\n", out);
}
