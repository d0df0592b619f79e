/*
 * visible.h
 *		What others named, in messages.
 */
#ifndef LOCKFENCE_VISIBLE_H
#define LOCKFENCE_VISIBLE_H

extern const char *lockfence_visible(const char *text);

#endif							/* LOCKFENCE_VISIBLE_H */
