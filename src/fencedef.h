/*
 * fencedef.h
 *		A fence, as declared and as resolved against its table.
 */
#ifndef LOCKFENCE_FENCEDEF_H
#define LOCKFENCE_FENCEDEF_H

#include "access/attnum.h"
#include "fmgr.h"

#include "lockfence.h"
#include "missing.h"

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
	bool		named_only;		/* a token presented without a resource is none */
	bool		reads_column;	/* the column is the application's own: read only */
	bool		advisory;
	WriteCommand missing;		/* commands that need no token */
	bool		single_use;
	Oid			validator;
	bool		unrecorded;		/* its table should be on record, and is not */
	struct ErrorData *fault;	/* why the rest is not to be used, as an advisory
								 * fence reports it; else NULL */

	/* as resolved against a tuple descriptor */
	AttrNumber	token_attno;	/* 0: none */
	int16		token_width;	/* of its values, in bytes */
	AttrNumber	wide_attno;		/* token_attno, if that has the width of a token */
	int			nparts;
	TemplatePart *parts;
	bool		constant;		/* the template has no placeholder */
	AttrNumber	key_attno;		/* its only placeholder, if that is passed by
								 * value, which settles its text; else 0 */
	AttrNumber	last_attno;		/* the last column that the fence reads */
	bool		pin_settings;	/* a value's text depends on session settings */
	bool		unpadded;		/* char(n) without the blanks that fill it up */
	int			max_length;		/* of a name of text and integers alone; else 0 */
} Fence;

/* The token that a value of the token column is. */
static inline FenceToken
lockfence_column_token(const Fence *fence, Datum value)
{
	if (likely(fence->token_width == sizeof(FenceToken)))
		return DatumGetInt64(value);
	return fence->token_width == sizeof(int32) ? DatumGetInt32(value) : DatumGetInt16(value);
}

#endif							/* LOCKFENCE_FENCEDEF_H */
