/*
 * svg.c
 *	  A figure with a time axis and lanes.
 *
 * Every mark differs from the others in shape as well as in colour.
 */
#include <string.h>

#include "svg.h"

#define LEFT 130
#define WIDTH 1060
#define RIGHT 20
#define TOP 46

const char *const holder_colours[8] = {
	"#4c78a8", "#b279a2", "#72a0a8", "#9d755d", "#8a8f3c", "#6f6fb0", "#5e9c76", "#c08a3e"
};

void
svg_text(FILE *out, const char *text)
{
	for (; *text; text++)
		switch (*text)
		{
			case '<': fputs("&lt;", out); break;
			case '>': fputs("&gt;", out); break;
			case '&': fputs("&amp;", out); break;
			case '"': fputs("&quot;", out); break;
			default: fputc(*text, out);
		}
}

double
svg_x(const figure *f, int64_t t)
{
	if (t < f->t0)
		t = f->t0;
	if (t > f->t1)
		t = f->t1;
	return LEFT + (double) (t - f->t0) * (WIDTH - LEFT - RIGHT) / (double) (f->t1 - f->t0);
}

int
svg_lane(const figure *f, const char *name)
{
	for (int i = 0; i < f->nlanes; i++)
		if (strcmp(f->lanes[i], name) == 0)
			return i;
	return -1;
}

static int
lane_y(const figure *f, int lane)
{
	return TOP + lane * f->lane_height;
}

/* The largest of 1, 2, 5 times a power of ten that gives at most 14 ticks. */
static double
tick_step(double seconds)
{
	static const double steps[] = {0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100};

	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
		if (seconds / steps[i] <= 14)
			return steps[i];
	return 200;
}

static void
draw_axis(const figure *f)
{
	double		step = tick_step((f->t1 - f->t0) / 1e6);
	int			bottom = lane_y(f, f->nlanes);
	double		first = (f->t0 - f->zero) / 1e6;
	int64_t		k = (int64_t) (first / step) - 1;

	for (;; k++)
	{
		int64_t		t = f->zero + (int64_t) (k * step * 1e6);

		if (t > f->t1)
			break;
		if (t < f->t0)
			continue;
		fprintf(f->out, "<line class='grid' x1='%.1f' y1='%d' x2='%.1f' y2='%d'/>"
				"<text class='tick' x='%.1f' y='%d'>%g s</text>\n",
				svg_x(f, t), TOP, svg_x(f, t), bottom, svg_x(f, t), bottom + 15, k * step);
	}
}

void
svg_begin(const figure *f, const char *title)
{
	int			height = lane_y(f, f->nlanes) + 24;

	fprintf(f->out, "<svg viewBox='0 0 %d %d' role='img'><title>", WIDTH, height);
	svg_text(f->out, title);
	fputs("</title>\n<defs><pattern id='stopped' width='6' height='6' patternUnits='userSpaceOnUse'"
		  " patternTransform='rotate(45)'><rect width='6' height='6' fill='#fff' fill-opacity='.55'/>"
		  "<line x1='0' y1='0' x2='0' y2='6' stroke='#444' stroke-width='2'/></pattern></defs>\n", f->out);
	for (int i = 0; i < f->nlanes; i++)
	{
		fprintf(f->out, "<rect class='lane%d' x='%d' y='%d' width='%d' height='%d'/>"
				"<text class='name' x='%d' y='%d'>", i % 2, LEFT, lane_y(f, i),
				WIDTH - LEFT - RIGHT, f->lane_height, LEFT - 8, lane_y(f, i) + f->lane_height / 2 + 4);
		svg_text(f->out, f->lanes[i]);
		fputs("</text>\n", f->out);
	}
	draw_axis(f);
}

void
svg_end(const figure *f)
{
	fputs("</svg>\n", f->out);
}

static void
draw_tip(const figure *f, const char *tip)
{
	if (tip == NULL)
		return;
	fputs("<title>", f->out);
	svg_text(f->out, tip);
	fputs("</title>", f->out);
}

void
svg_band(const figure *f, int64_t start, int64_t end, const char *class, const char *label,
		 const char *tip)
{
	double		x = svg_x(f, start);

	if (end < f->t0 || start > f->t1)
		return;
	fprintf(f->out, "<rect class='%s' x='%.1f' y='%d' width='%.1f' height='%d'>", class, x, TOP - 2,
			svg_x(f, end) - x, f->nlanes * f->lane_height + 4);
	draw_tip(f, tip);
	fprintf(f->out, "</rect><text class='bandname' x='%.1f' y='%d'>", x + 3, TOP - 8);
	svg_text(f->out, label);
	fputs("</text>\n", f->out);
}

void
svg_line(const figure *f, int64_t t, const char *class, const char *label, int row)
{
	double		x = svg_x(f, t);

	if (t < f->t0 || t > f->t1)
		return;
	fprintf(f->out, "<line class='%s' x1='%.1f' y1='%d' x2='%.1f' y2='%d'/>"
			"<text class='bandname' x='%.1f' y='%d'>", class, x, TOP - 4, x,
			lane_y(f, f->nlanes), x + 3, TOP - 8 - 14 * row);
	svg_text(f->out, label);
	fputs("</text>\n", f->out);
}

void
svg_bar(const figure *f, int lane, int64_t start, int64_t end, const char *fill, const char *label,
		const char *tip)
{
	double		x = svg_x(f, start);
	double		width = svg_x(f, end) - x;
	int			y = lane_y(f, lane) + f->lane_height / 4;

	if (lane < 0 || end < f->t0 || start > f->t1)
		return;
	fprintf(f->out, "<rect class='bar' x='%.1f' y='%d' width='%.1f' height='%d' fill='%s'>", x, y,
			width < 1 ? 1 : width, f->lane_height / 2, fill);
	draw_tip(f, tip);
	fputs("</rect>", f->out);
	if (label && width > 16 + 6.2 * strlen(label))
	{
		fprintf(f->out, "<text class='inbar' x='%.1f' y='%d'>", x + 16, y + f->lane_height / 4 + 4);
		svg_text(f->out, label);
		fputs("</text>", f->out);
	}
	fputs("\n", f->out);
}

void
svg_stopped(const figure *f, int lane, int64_t start, int64_t end)
{
	double		x = svg_x(f, start);
	int			y = lane_y(f, lane);

	if (lane < 0)
		return;
	fprintf(f->out, "<rect class='stopped' x='%.1f' y='%d' width='%.1f' height='%d'/>"
			"<text class='stoppedname' x='%.1f' y='%d'>stopped for %.1f s</text>\n",
			x, y + 2, svg_x(f, end) - x, f->lane_height - 4, x, TOP - 8, (end - start) / 1e6);
}

static const char *const shapes[MARK_KINDS] = {
	[MARK_ACCEPTED] = "<circle class='accepted' cx='%.1f' cy='%.1f' r='4.5'>",
	[MARK_REFUSED] = "<path class='refused' d='M%.1f %.1fm-6 -6l12 12m0 -12l-12 12'>",
	[MARK_PRESENT] = "<path class='present' d='M%.1f %.1fm0 -6l5.5 11h-11z'>",
	[MARK_FENCE] = "<path class='fence' d='M%.1f %.1fm0 -7l7 7l-7 7l-7 -7z'>",
	[MARK_ENDED] = "<path class='ended' d='M%.1f %.1fm-5 -5h10v10h-10z'>",
	[MARK_DENIED] = "<path class='denied' d='M%.1f %.1fm-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0m1.5 -3.5l7 7'>",
};

static const char *const mark_words[MARK_KINDS] = {
	"write accepted", "write REFUSED as stale", "token presented and committed",
	"the holder was told to stop (onFence)", "found its transaction ended by the fence",
	"not granted: the service is sealed"
};

void
svg_mark(const figure *f, int lane, const mark *m)
{
	char		tip[256];
	double		y = lane_y(f, lane) + f->lane_height / 2.0;

	if (lane < 0 || m->t < f->t0 || m->t > f->t1)
		return;
	/* events of the same moment: the holder's own affairs above, its writes below */
	if (m->kind == MARK_FENCE || m->kind == MARK_ENDED)
		y -= f->lane_height / 4.0;
	if (m->kind == MARK_REFUSED)
		y += f->lane_height / 5.0;
	snprintf(tip, sizeof tip, "%s, %.3f s: %s%s%s%s%s", m->who, (m->t - f->zero) / 1e6,
			 mark_words[m->kind], *m->token ? ", token " : "", *m->token ? token_words(m->token) : "",
			 *m->code ? ", " : "", m->code);
	fprintf(f->out, shapes[m->kind], svg_x(f, m->t), y);
	draw_tip(f, tip);
	/* the end of a shape is the end of its element */
	fputs(m->kind == MARK_ACCEPTED ? "</circle>\n" : "</path>\n", f->out);
}
