/*
 * report.c
 *		What was found: figures first, then a line a check.
 */
#include "property.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int	failed;

/* One check, as a test of TAP's. */
static void __attribute__((format(printf, 2, 3)))
check(bool good, const char *fmt,...)
{
	va_list		args;

	printf("%s - ", good ? "ok" : "not ok");
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
	failed += !good;
}

static void
add_error(Stats *sum, const ErrorCount *e)
{
	int			i;

	for (i = 0; i < MAX_ERRORS - 1 && sum->errors[i].n > 0; i++)
		if (strcmp(sum->errors[i].state, e->state) == 0 &&
			sum->errors[i].unexpected == e->unexpected)
			break;
	if (sum->errors[i].n == 0)
	{
		sum->errors[i] = *e;
		return;
	}
	sum->errors[i].n += e->n;
}

static void
add_stats(Stats *sum, const Stats *s)
{
	int			i;

	sum->transactions += s->transactions;
	sum->commits += s->commits;
	sum->rollbacks += s->rollbacks;
	sum->prepared += s->prepared;
	sum->savepoints += s->savepoints;
	sum->undone += s->undone;
	sum->reconnects += s->reconnects;
	sum->deadlocks += s->deadlocks;
	sum->stale_ended += s->stale_ended;
	sum->current_ended += s->current_ended;
	sum->deadlock_victims += s->deadlock_victims;
	sum->current_victims += s->current_victims;
	sum->misstored += s->misstored;
	for (i = 0; i < MAX_ERRORS && s->errors[i].n > 0; i++)
		add_error(sum, &s->errors[i]);
}

static void
print_figures(Shared *shm, const Stats *sum, const Verdict *v)
{
	printf("  transactions: %ld begun, %ld known committed, %ld rolled back, %ld prepared; "
		   "%ld savepoints, %ld undone\n", sum->transactions, sum->commits, sum->rollbacks,
		   sum->prepared, sum->savepoints, sum->undone);
	printf("  chaos: %ld kills, %ld reconnects, %ld marks raised, %ld reset, %ld pruned, %ld crashes\n",
		   atomic_load(&shm->kills), sum->reconnects, atomic_load(&shm->raises),
		   atomic_load(&shm->resets), atomic_load(&shm->prunes), atomic_load(&shm->crashes));
	/* a signal may arrive when its addressee has gone on to the next transaction */
	printf("  canceled by the fence: %ld that held a resource by a stale token, %ld that did not\n",
		   sum->stale_ended, sum->current_ended);
	printf("  deadlocks that the server found: %ld, of which %ld hit one with no stale token\n",
		   sum->deadlock_victims, sum->current_victims);
	printf("  accepted: %ld in %ld transactions (%ld read committed, %ld repeatable read, "
		   "%ld serializable), %ld advances, %ld by siblings\n", v->accepted, v->transactions,
		   v->by_isolation[0], v->by_isolation[1], v->by_isolation[2], v->advances, v->siblings);
}

/* Failed statements by SQLSTATE; returns how many should not have been. */
static long
print_errors(const Stats *sum)
{
	long		unexpected = 0;
	int			i;

	for (i = 0; i < MAX_ERRORS && sum->errors[i].n > 0; i++)
	{
		const ErrorCount *e = &sum->errors[i];

		printf("  %s %7ld%s  e.g. %s: %s\n", e->state, e->n, e->unexpected ? "  UNEXPECTED" : "",
			   e->doing, e->message);
		if (e->unexpected)
			unexpected += e->n;
	}
	return unexpected;
}

static long
count_state(const Stats *sum, const char *state)
{
	int			i;

	for (i = 0; i < MAX_ERRORS && sum->errors[i].n > 0; i++)
		if (strcmp(sum->errors[i].state, state) == 0 && !sum->errors[i].unexpected)
			return sum->errors[i].n;
	return 0;
}

/* Must this way be accepted now and then? */
static bool
is_wanted(const Options *opt, int kind, int carrier, int verb)
{
	return (opt->fence_mask & (1u << kind)) && carrier != CARRY_NOTHING &&
		carrier != CARRY_CONFLICT && verb != VERB_TRUNCATE && fence_allows(opt, kind, carrier, verb);
}

/* What was accepted on one fence; returns how much. */
static long
print_fence(const Options *opt, const Verdict *v, int kind)
{
	long		sum = 0;
	int			carrier;
	int			verb;

	printf("  %-6s", fences[kind].name);
	for (carrier = 0; carrier < N_CARRIERS; carrier++)
		for (verb = 0; verb < N_VERBS; verb++)
		{
			long		n = v->cells[kind][carrier][verb];

			sum += n;
			if (n > 0 || is_wanted(opt, kind, carrier, verb))
				printf(" %s-%s %ld", carrier_names[carrier], verb_names[verb], n);
		}
	putchar('\n');
	return sum;
}

/* Was this way accepted on any fence, if one wants it? */
static bool
way_is_missing(const Options *opt, const Verdict *v, int carrier, int verb)
{
	bool		wanted = false;
	int			kind;

	for (kind = 0; kind < N_FENCES; kind++)
	{
		if (v->cells[kind][carrier][verb] > 0)
			return false;
		wanted |= is_wanted(opt, kind, carrier, verb);
	}
	return wanted;
}

/*
 * Every fence, and every statement with every carrier of the token.  Each with
 * each would be too much to ask of a short run on a slow machine.
 */
static void
check_ways(const Options *opt, const Verdict *v)
{
	long		idle = 0;
	long		missing = 0;
	int			i;
	int			j;

	for (i = 0; i < N_FENCES; i++)
		if ((opt->fence_mask & (1u << i)) && print_fence(opt, v, i) == 0)
			idle++;
	if (opt->documented || opt->crashes > 1)
		return;
	check(idle == 0, "writes to each fence were accepted (%ld fences without)", idle);
	for (i = 0; i < N_CARRIERS; i++)
		for (j = 0; j < N_VERBS; j++)
			if (way_is_missing(opt, v, i, j))
			{
				missing++;
				printf("  never accepted: %s-%s\n", carrier_names[i], verb_names[j]);
			}
	check(missing == 0, "each way to write was accepted (%ld were not)", missing);
}

/* Then no two sessions can share a token. */
static bool
only_single_use(const Options *opt)
{
	return (opt->fence_mask & ~(1u << FENCE_TICKET | 1u << FENCE_ONCE)) == 0;
}

/* A run in which little happened proves little. */
static void
check_progress(Shared *shm, const Stats *sum, const Verdict *v)
{
	const Options *opt = &shm->opt;
	long		least = opt->transactions ? opt->transactions * opt->workers / 4 :
		opt->crashes > 1 ? opt->crashes * 10L : opt->seconds * 50L;
	long		crashes = atomic_load(&shm->crashes);
	long		behind = atomic_load(&shm->behind);
	long		stale = count_state(sum, "LF001");

	check(v->accepted >= least, "%ld writes were accepted (at least %ld)", v->accepted, least);
	check(stale > 0, "%ld stale tokens were refused", stale);
	check(v->advances > 0 && (v->siblings > 0 || only_single_use(opt)), "marks advanced %ld times, %ld times two sessions shared a token",
		  v->advances, v->siblings);
	if (opt->documented)
		return;
	check(sum->undone > 0 && (sum->prepared > 0 || !opt->prepare), "%ld savepoints were undone, %ld transactions prepared",
		  sum->undone, sum->prepared);
	if (opt->chaos && opt->crashes == 1)
		check(atomic_load(&shm->kills) > 0 && atomic_load(&shm->raises) > 0,
			  "%ld backends were killed, %ld marks raised", atomic_load(&shm->kills),
			  atomic_load(&shm->raises));
	if (opt->crash)
	{
		check(crashes == opt->crashes && v->lost == 0,
			  "no acknowledged token was lost in %ld crashes (%ld were)", crashes, v->lost);
		check(behind == 0, "no mark was behind it after one (%ld were)", behind);
	}
}

static void
check_guard(Shared *shm, const Stats *sum, const Verdict *v, PGconn *conn)
{
	const Options *opt = &shm->opt;
	long		unexpected = print_errors(sum);
	long		wrong;

	check(v->violations == 0, "no token goes down in %ld accepted writes (%ld do)", v->accepted,
		  v->violations);
	check(v->reused == 0, "no single-use token writes in two transactions (%ld do)", v->reused);
	if (strcmp(shm->opt.guard, "lockfence") == 0)
		check(v->issued > 0 && v->reissued == 0, "each of %ld tokens that were issued is above all before it (%ld are not)",
			  v->issued, v->reissued);
	check(unexpected == 0, "no failure is unexpected (%ld are)", unexpected);
	check(!atomic_load(&shm->broken), "every worker came through");
	wrong = marks_wrong(conn, shm);
	check(wrong == 0, "marks cover what was accepted and confirmed (%ld do not)", wrong);
	wrong = rows_wrong(conn, shm) + sum->misstored;
	check(wrong == 0, "rows carry the token that wrote them (%ld do not)", wrong);
	if (opt->documented)
		check(sum->deadlocks == 0, "no deadlock in the documented order (%ld)", sum->deadlocks);
	check_ways(opt, v);
	check_progress(shm, sum, v);
}

/* Returns the exit status. */
int
report(Shared *shm, const Verdict *v, PGconn *conn)
{
	static Stats sum;
	int			i;

	for (i = 0; i <= MAX_WORKERS; i++)
		add_stats(&sum, &shm->stats[i]);
	print_figures(shm, &sum, v);

	if (shm->opt.guarded)
		check_guard(shm, &sum, v, conn);
	else
	{
		print_errors(&sum);
		check(v->violations > 0, "without a guard tokens go down (%ld times in %ld accepted writes)",
			  v->violations, v->accepted);
	}
	fflush(stdout);
	return failed > 0;
}
