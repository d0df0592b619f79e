/*
 * mutate.h
 *	  Breaks a good history in one way, so that the checker can be checked.
 */
#ifndef CHECK_MUTATE_H
#define CHECK_MUTATE_H

#include <jansson.h>
#include <stdbool.h>

typedef struct mutant
{
	const char *name;
	bool		(*apply) (json_t *events);	/* false: nothing there to break */
} mutant;

extern const mutant mutants[];
extern const int nmutants;

#endif
