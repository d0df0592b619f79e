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
	bool		advisory;
	WriteCommand missing;		/* commands that need no token */
	bool		single_use;
	Oid			validator;
	bool		unrecorded;		/* its table should be on record, and is not */
	struct ErrorData *fault;	/* why the rest is not to be used, as an advisory
								 * fence reports it; else NULL */

	/* as resolved against a tuple descriptor */
	AttrNumber	token_attno;	/* 0: none */
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

#endif							/* LOCKFENCE_FENCEDEF_H */
