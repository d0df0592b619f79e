/*
 * request.h
 *		One question to the service.
 */
#ifndef LOCKFENCE_VALIDATE_REQUEST_H
#define LOCKFENCE_VALIDATE_REQUEST_H

#include "answer.h"
#include "settings.h"

extern bool lockfence_prepare(const Question *question, Report *report);
extern bool lockfence_ask(const Question *question, uint64 deadline,
						  Answer *answer, Report *report);

#endif							/* LOCKFENCE_VALIDATE_REQUEST_H */
