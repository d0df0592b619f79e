/*
 * partitionddl.h
 *		Commands on partitions, before they begin.
 */
#ifndef LOCKFENCE_PARTITIONDDL_H
#define LOCKFENCE_PARTITIONDDL_H

#include "nodes/nodes.h"

extern void lockfence_before_partition(const Node *command);

#endif							/* LOCKFENCE_PARTITIONDDL_H */
