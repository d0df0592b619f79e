/*
 * epoch.h
 *		Is a token in force at all, by the epoch and the minimum?
 */
#ifndef LOCKFENCE_EPOCH_H
#define LOCKFENCE_EPOCH_H

#include "check.h"

extern bool lockfence_check_epoch(const FencedWrite *write, FenceToken token);
extern bool lockfence_would_pass(FenceToken token, FenceToken mark, bool single_use);

#endif							/* LOCKFENCE_EPOCH_H */
