/*
 * coreapi.h
 *		The core's API.
 */
#ifndef LOCKFENCE_VALIDATE_COREAPI_H
#define LOCKFENCE_VALIDATE_COREAPI_H

#include "api.h"

extern const LockfenceApi *lockfence_core_api(void);

#endif							/* LOCKFENCE_VALIDATE_COREAPI_H */
