/*
 * property.h
 *		What the files of the property test share.
 *
 * The property: for every resource, in commit order, the tokens of accepted
 * writes never go down.  Workers (one process and connection each) write to
 * shared resources in every way there is, with current, shared and stale
 * tokens; whatever is accepted is also written to a log table in the same
 * (sub)transaction; the log is then read back in commit order and judged.
 */
#ifndef PROPERTY_H
#define PROPERTY_H

#include <libpq-fe.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef int64_t Token;			/* 0: none */

#define MAX_WORKERS		64
#define MAX_RESOURCES	32		/* per fence */
#define SHARED_LINES	4		/* rows of a resource that everybody writes to */
#define RECENT_GRANTS	8
#define RESET_FENCE		FENCE_PART	/* where marks are reset, and so may go down */
#define MAX_DEPTH		3		/* of savepoints */
#define MAX_CRASHES		1000
#define TEXT_LEN		160
#define SQL_LEN			4096

/* ---- what is written to, how, and how the token gets there ---- */

typedef enum FenceKind
{
	FENCE_ROW,					/* every row is its own resource */
	FENCE_TICKET,				/* ... with single-use tokens */
	FENCE_BATCH,				/* template, with a token column */
	FENCE_NOTE,					/* the same resources, no token column */
	FENCE_ORM,					/* ... a token column that proves nothing */
	FENCE_PART,					/* template, partitioned table */
	FENCE_ONCE,					/* template, single-use tokens */
	FENCE_JOB,					/* constant, statement trigger */
	FENCE_LEDGER,				/* constant, with a token column */
	N_FENCES
} FenceKind;

typedef enum Carrier
{
	CARRY_RESOURCE,				/* present(resource, token) */
	CARRY_AMBIENT,				/* present(token) */
	CARRY_COLUMN,				/* the statement sets the token column */
	CARRY_ARGUMENT,				/* guarded_update(), guarded_delete() */
	CARRY_NOTHING,				/* must be refused */
	CARRY_CONFLICT,				/* two different tokens: must be refused */
	N_CARRIERS
} Carrier;

typedef enum Verb
{
	VERB_PRESENT,
	VERB_UPDATE,
	VERB_INSERT,
	VERB_UPSERT,
	VERB_DELETE,
	VERB_MERGE,
	VERB_COPY,
	VERB_MOVE,					/* a row changes its resource */
	VERB_TRUNCATE,
	VERB_RAISE,					/* raise_mark() by an administrator */
	VERB_RESET,					/* reset_mark(), the one thing that lowers a mark */
	VERB_ISSUE,					/* issue(), the token of which is new */
	VERB_CRASH,					/* no write: the server is back from a crash */
	N_VERBS
} Verb;

typedef enum Isolation
{
	READ_COMMITTED,
	REPEATABLE_READ,
	SERIALIZABLE,
	N_ISOLATIONS
} Isolation;

typedef struct FenceInfo
{
	const char *name;			/* as an option and in the log */
	const char *table;			/* %d: a table a resource */
	const char *resource;		/* NULL: every row is one */
	const char *attach;			/* arguments after the table */
	bool		has_column;
	bool		single_use;
	bool		presented_only;
	FenceKind	slots;			/* whose grants it shares */
} FenceInfo;

extern const FenceInfo fences[N_FENCES];
extern const char *const carrier_names[N_CARRIERS];
extern const char *const verb_names[N_VERBS];
extern const char *const isolation_names[N_ISOLATIONS];

/* ---- options ---- */

typedef struct Options
{
	const char *guard;			/* lockfence, none, or an SQL file */
	const char *dsn;
	const char *crash;			/* command that crash-restarts the server */
	int			crashes;		/* how often; more than 1: until then */
	uint64_t	seed;
	int			workers;
	int			seconds;
	long		transactions;	/* a worker; 0: until the time is up */
	int			isolation;		/* N_ISOLATIONS: mixed */
	int			resources;
	unsigned	fence_mask;
	unsigned	verb_mask;
	bool		documented;		/* present() first, own row: never a deadlock */
	bool		chaos;			/* kills, raise_mark, prune */
	bool		prepare;		/* prepared transactions */
	bool		preempt;
	bool		guarded;		/* a guard that must hold, not "none" */
	int			server_version;
} Options;

/* ---- shared between processes ---- */

#define MAX_ERRORS 48

typedef struct ErrorCount
{
	char		state[6];
	bool		unexpected;
	long		n;
	char		doing[TEXT_LEN];	/* the first of them */
	char		message[2 * TEXT_LEN];
} ErrorCount;

typedef struct Stats
{
	long		transactions;
	long		commits;
	long		rollbacks;
	long		prepared;
	long		savepoints;
	long		undone;			/* ROLLBACK TO SAVEPOINT */
	long		reconnects;
	long		accepted;		/* logged, whether or not committed later */
	long		deadlocks;		/* found by the server or by the fence */
	long		deadlock_victims;	/* of the server ... */
	long		current_victims;	/* ... that held nothing by a stale token */
	long		stale_ended;	/* by the fence, holding a lower token than another's */
	long		current_ended;	/* ... but holding none */
	long		misstored;		/* token column differs from the accepted token */
	ErrorCount	errors[MAX_ERRORS];
} Stats;

typedef struct Grants
{
	_Atomic Token recent[RECENT_GRANTS];
	atomic_uint n;
	_Atomic Token acknowledged; /* highest whose COMMIT was confirmed */
	_Atomic Token presented;	/* highest that a session has presented, or is about to */
} Grants;

typedef struct Shared
{
	Options		opt;
	atomic_bool stop;
	atomic_bool broken;			/* a worker gave up */
	atomic_bool crashing;		/* workers wait before they connect */
	_Atomic Token revision;		/* of the pretend lock service */
	Grants		grants[N_FENCES][MAX_RESOURCES];
	atomic_int	pid[MAX_WORKERS + 1];
	atomic_long kills;
	atomic_long raises;
	atomic_long resets;			/* of the resources of RESET_FENCE */
	atomic_long prunes;
	atomic_long crashes;
	atomic_long behind;			/* marks that a crash took back */
	Token		at_crash[MAX_CRASHES][N_FENCES][MAX_RESOURCES]; /* acknowledged by then */
	Stats		stats[MAX_WORKERS + 1]; /* the last: the administrator's */
} Shared;

/* ---- a worker ---- */

/* What a statement may fail with, beyond what may always happen. */
#define MAY_CLASH		0x01	/* competes for data rows: 40001 above READ COMMITTED */
#define MAY_DUPLICATE	0x02	/* 23505 on the data table */
#define MAY_CONFLICT	0x04	/* LF006 */
#define MUST_MISS		0x08	/* LF002 and nothing else */
#define MAY_BE_HIGHER	0x10	/* 22023, raise_mark() below the mark */

typedef struct Acceptance
{
	FenceKind	kind;
	int			resource;
	Token		token;
	int			depth;			/* savepoints around it */
} Acceptance;

typedef struct Txn
{
	Isolation	isolation;
	bool		use_ambient;	/* one ambient token for all; else a token a resource */
	bool		mixed;			/* changes its mind about tokens and carriers */
	bool		failed;
	bool		touched;
	Token		ambient;		/* in effect; 0: none */
	Token		only_token;		/* of a transaction that uses an ambient one */
	Token		tokens[N_FENCES][MAX_RESOURCES];
	int			depth;
	int			nsavepoints;
	Token		ambient_at[MAX_DEPTH];
	Acceptance	accepted[64];
	int			naccepted;
	Acceptance	presenting[2];	/* what the write at hand may have accepted */
	int			npresenting;
} Txn;

typedef struct Worker
{
	int			id;
	uint64_t	rng;
	PGconn	   *conn;
	Shared	   *shm;
	const Options *opt;
	Stats	   *stats;
	int			may;			/* MAY_ flags of the statement at hand */
	char		doing[TEXT_LEN];
	bool		lost;			/* no connection */
	int64_t		seq;
	Token		held[N_FENCES][MAX_RESOURCES];
	Txn			txn;
} Worker;

/* One write. */
typedef struct Write
{
	FenceKind	kind;
	Carrier		carrier;
	Verb		verb;
	int			resource;
	int			line;
	Token		token;
} Write;

/* service.c: the pretend lock service, and chance */
extern uint64_t random_next(uint64_t *state);
extern uint64_t random_seed(uint64_t seed, int stream);
extern bool chance(Worker *w, int percent);
extern int	pick(Worker *w, int n);
extern void maybe_pause(Worker *w, int percent);
extern Token service_grant(Shared *shm, FenceKind kind, int resource);
extern Token service_choose(Worker *w, FenceKind kind, int resource);
extern Token service_before_issue(Worker *w, FenceKind kind, int resource);
extern void service_issued(Worker *w, FenceKind kind, int resource, Token token);
extern void service_present(Worker *w, FenceKind kind, int resource, Token token);
extern bool service_is_stale(const Worker *w);

/* session.c: statements, and what may go wrong with them */
extern void session_connect(Worker *w);
extern PGresult *attempt(Worker *w, const char *fmt,...)
			__attribute__((format(printf, 2, 3)));
extern bool attempt_copy(Worker *w, const char *command, const char *rows);
extern void note_failure(Worker *w, const char *state, const char *message,
						 bool unexpected);
extern PGresult *must(PGconn *conn, const char *fmt,...)
			__attribute__((format(printf, 2, 3)));

/* paths.c: what to write next, and how the token gets there */
extern void write_something(Worker *w);
extern void write_as_documented(Worker *w);

/* statements.c: the statements that write */
extern bool execute_write(Worker *w, const Write *write, int from);
extern int	fresh_line(Worker *w);

/* fences.c: what is written to, and which ways there are */
extern bool fence_allows(const Options *opt, FenceKind kind, Carrier carrier, Verb verb);
extern int	fence_resources(const Options *opt, FenceKind kind);
extern const char *resource_name(FenceKind kind, int resource);
extern const char *table_name(FenceKind kind, int resource);

/* accept.c: what was accepted is logged */
extern bool log_acceptance(Worker *w, const Write *write, const char *resource);
extern bool log_rows(Worker *w, const Write *write, PGresult *result);
extern void confirm_acceptances(Worker *w);
extern void forget_acceptances(Worker *w, int depth);
extern void keep_acceptances(Worker *w);

/* txn.c: one random transaction */
extern void run_transaction(Worker *w);

/* chaos.c: kills, administrators, crashes */
extern void run_chaos(Worker *w);

/* schema.c: tables, fences and the slot */
extern void schema_create(PGconn *conn, const Options *opt);
extern void schema_drop_slot(PGconn *conn);
extern const char *slot_name(void);

/* oracle.c: the log in commit order, judged */
typedef struct Verdict
{
	long		accepted;
	long		transactions;
	long		violations;		/* a token goes down */
	long		reused;			/* a single-use token writes in two transactions */
	long		issued;
	long		reissued;		/* an issued token is not above all before it */
	long		lost;			/* an acknowledged token did not survive a crash */
	long		advances;
	long		siblings;		/* equal tokens of different workers */
	long		cells[N_FENCES][N_CARRIERS][N_VERBS];
	long		by_isolation[N_ISOLATIONS];
} Verdict;

extern void oracle_judge(PGconn *conn, Shared *shm, Verdict *verdict);
extern Token oracle_highest(const char *resource);

/* marks.c: marks and stored tokens after the run */
extern long marks_behind(PGconn *conn, Shared *shm, int crash);
extern long marks_wrong(PGconn *conn, Shared *shm);
extern long rows_wrong(PGconn *conn, Shared *shm);

/* options.c */
extern void parse_options(Options *opt, int argc, char **argv);

/* report.c */
extern int	report(Shared *shm, const Verdict *verdict, PGconn *conn);

#endif							/* PROPERTY_H */
