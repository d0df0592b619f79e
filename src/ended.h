/*
 * ended.h
 *		Why a transaction was ended.
 */
#ifndef LOCKFENCE_ENDED_H
#define LOCKFENCE_ENDED_H

#include "check.h"

extern void lockfence_note_end(int pid, const FenceCheck *check);
extern void lockfence_explain_end(ErrorData *edata);
extern Size lockfence_ended_size(void);
extern void lockfence_ended_init_memory(void *memory);

#endif							/* LOCKFENCE_ENDED_H */
