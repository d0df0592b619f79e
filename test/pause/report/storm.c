/*
 * storm.c
 *	  The picture of proof 4: too many clients for lanes, so counts over time.
 */
#include <stdlib.h>
#include <string.h>

#include "../check/strmap.h"
#include "figures.h"
#include "svg.h"

#define STEP INT64_C(250000)
#define LEFT 130
#define WIDTH 1060
#define RIGHT 20
#define TOP 46
#define HEIGHT 190

typedef struct counts
{
	int			n;
	int		   *holding;		/* clients that hold a lock and live */
	int		   *renewed;		/* renewals answered, a step */
	strmap		holds;			/* by client: 1 */
} counts;

static bool
is(json_t *event, const char *what, const char *phase)
{
	const char *w = json_string_value(json_object_get(event, "what"));
	const char *p = json_string_value(json_object_get(event, "phase"));

	return w && p && strcmp(w, what) == 0 && strcmp(p, phase) == 0;
}

/* Does this client hold its lock?  One that is fenced before it was granted any did not. */
static int *
holds_at(counts *c, json_t *event)
{
	return strmap_at(&c->holds, json_string_value(json_object_get(event, "who")));
}

static void
count_event(counts *c, const story *s, json_t *event)
{
	int			at = (int) ((json_integer_value(json_object_get(event, "t")) - s->first) / STEP);

	if (at < 0 || at >= c->n)
		return;
	if (is(event, "renew", "ok"))
		c->renewed[at]++;
	else if (is(event, "acquire", "ok") && *holds_at(c, event) != 1)
	{
		*holds_at(c, event) = 1;
		c->holding[at]++;
	}
	else if (is(event, "fence", "ok") && *holds_at(c, event) == 1)
	{
		*holds_at(c, event) = 0;
		c->holding[at]--;
	}
}

/* From changes to totals; a kill leaves no holder. */
static void
add_up(counts *c, const story *s)
{
	int			killed = -1;
	int			sum = 0;

	for (int i = 0; i < s->nmoments; i++)
		if (strcmp(s->moments[i].what, "kill") == 0)
			killed = (int) ((s->moments[i].t - s->first) / STEP);
	for (int i = 0; i < c->n; i++)
	{
		sum = i == killed ? 0 : sum + c->holding[i];
		c->holding[i] = sum;
	}
}

static int
highest(const int *values, int n)
{
	int			top = 1;

	for (int i = 0; i < n; i++)
		if (values[i] > top)
			top = values[i];
	return top;
}

static void
draw_counts(const figure *f, const int *values, const counts *c, int top, const char *class, bool area)
{
	int			bottom = TOP + HEIGHT;

	fprintf(f->out, "<path class='%s' d='M%d %d", class, LEFT, bottom);
	for (int i = 0; i < c->n; i++)
	{
		int64_t		t = f->t0 + i * STEP;
		double		y = bottom - (double) values[i] * (HEIGHT - 10) / top;

		fprintf(f->out, "L%.1f %.1fL%.1f %.1f", svg_x(f, t), y, svg_x(f, t + STEP), y);
	}
	fprintf(f->out, "%s'/>\n", area ? "V236Z" : "");
}

static void
draw_scale(const figure *f, int top, const char *words, const char *class, int row)
{
	fprintf(f->out, "<text class='name %s' x='%d' y='%d'>%s</text>"
			"<text class='name %s' x='%d' y='%d'>at most %d</text>\n",
			class, LEFT - 8, TOP + 20 + row * 60, words, class, LEFT - 8, TOP + 36 + row * 60, top);
}

void
figure_storm(FILE *out, json_t *events, const story *s)
{
	figure		f = {out, s->first, s->last, s->first, {""}, 1, HEIGHT};
	counts		c = {(int) ((s->last - s->first) / STEP) + 1};
	json_t	   *event;
	size_t		i;

	c.holding = calloc(c.n, sizeof(int));
	c.renewed = calloc(c.n, sizeof(int));
	json_array_foreach(events, i, event)
		count_event(&c, s, event);
	add_up(&c, s);
	for (int k = 0; k < s->nmoments; k++)
		if (strcmp(s->moments[k].what, "kill") == 0)
			f.zero = s->moments[k].t;
	svg_begin(&f, "how many clients hold their lock, and how many renewals are answered");
	draw_counts(&f, c.holding, &c, highest(c.holding, c.n), "holding", true);
	draw_counts(&f, c.renewed, &c, highest(c.renewed, c.n), "renewed", false);
	draw_scale(&f, highest(c.holding, c.n), "clients holding", "holdingname", 0);
	draw_scale(&f, (int) (highest(c.renewed, c.n) * 1000000 / STEP), "renewals per second", "renewedname", 1);
	for (int k = 0; k < s->nmoments; k++)
		if (strcmp(s->moments[k].what, "kill") == 0)
			svg_line(&f, s->moments[k].t, "event", "all killed and started again", 0);
	svg_end(&f);
	free(c.holding);
	free(c.renewed);
	strmap_free(&c.holds);
}
