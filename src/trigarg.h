/*
 * trigarg.h
 *		A fence as its trigger's arguments declare it.
 */
#ifndef LOCKFENCE_TRIGARG_H
#define LOCKFENCE_TRIGARG_H

#include "datatype/timestamp.h"
#include "fmgr.h"
#include "storage/lockdefs.h"
#include "utils/rel.h"

#include "check.h"

typedef struct TemplatePart
{
	char	   *literal;		/* text; NULL: the value of a column */
	int			length;			/* of the text */
	AttrNumber	attno;
	Oid			type;			/* of the column */
	FmgrInfo	output;
} TemplatePart;

typedef struct Fence
{
	/* as declared */
	char	   *resource;		/* NULL: every row is its own resource */
	char	   *token_column;	/* NULL: none */
	bool		presented_only; /* the column is no proof */
	bool		advisory;
	TimestampTz advisory_since; /* 0: not told */
	bool		missing_allowed;
	bool		single_use;
	Oid			validator;
	bool		unrecorded;		/* its table should be on record, and is not */

	/* as resolved against a tuple descriptor */
	AttrNumber	token_attno;	/* 0: none */
	int			nparts;
	TemplatePart *parts;
	bool		constant;		/* the template has no placeholder */
	AttrNumber	key_attno;		/* its only placeholder, if that is passed by
								 * value, which settles its text; else 0 */
	AttrNumber	last_attno;		/* the last column that the fence reads */
	bool		pin_settings;	/* a value's text depends on session settings */
	int			max_length;		/* of a name of text and integers alone; else 0 */
} Fence;

extern const Fence *lockfence_trigger_fence(FunctionCallInfo fcinfo);
extern const Fence *lockfence_relation_fence(Relation rel);
extern FenceCheck lockfence_fence_check(const Fence *fence, Relation rel,
										const char *resource);
extern void lockfence_refuse_setting(const char *argument, const char *detail);
extern void lockfence_trigarg_at_relcache(Oid relid);

#endif							/* LOCKFENCE_TRIGARG_H */
