/*
 * check.h
 *		What is asked of the fence: may this write go on?
 */
#ifndef LOCKFENCE_CHECK_H
#define LOCKFENCE_CHECK_H

#include "executor/tuptable.h"
#include "utils/rel.h"

#include "lockfence.h"
#include "missing.h"

struct Fence;
struct PresentedTokens;

/* What to report of a write that is refused, and how. */
typedef struct FencedWrite
{
	Relation	rel;			/* table written to; NULL: no table, present() */
	bool		is_ddl;			/* a command that changes definitions, of no table */
	const char *resource;		/* what the token is presented for; NULL: the row */
	const struct Fence *named_by;	/* whose template a row's values filled in for
									 * that; NULL: the caller gave the name */
	TupleTableSlot *row;		/* ... on a row fence */
	bool		advisory;		/* report instead of refusing */
} FencedWrite;

/* One question to the fence: may this write go on? */
typedef struct FenceCheck
{
	FencedWrite write;
	const struct Fence *fence;	/* NULL: present(), which is of no table */
	WriteCommand command;		/* of the write to its table */
	const struct PresentedTokens *tokens;	/* NULL: none is presented, as for
											 * one that is issued */
	FenceToken	token;			/* the one that counts */
	FenceToken	stored;			/* in the row, if that is of the resource */
	bool		own_row;		/* this transaction has written that row */
	bool		needs_none;		/* a row that no holder has yet */
	bool		only_compares;	/* a row that is not written: the mark in it is not raised */
	bool		sets_columns;	/* the write could present a token in a column */
	bool		single_use;		/* equal is stale too */
	Oid			validator;		/* asked before an advance; InvalidOid: the
								 * default one, if there is one */
	bool		by_administrator;	/* by a function that runs as its owner */
	bool		no_wait;		/* fail where a transaction would have to be waited for */
} FenceCheck;

#endif							/* LOCKFENCE_CHECK_H */
