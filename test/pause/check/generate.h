/*
 * generate.h
 *	  Makes a good history of a given length, for the checker's own tests.
 */
#ifndef CHECK_GENERATE_H
#define CHECK_GENERATE_H

#include <jansson.h>

extern json_t *generate_history(int operations, unsigned seed);

#endif
