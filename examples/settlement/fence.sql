-- The lock is on the batch, and batches are never deleted and inserted again: a row fence.
SELECT lockfence.attach('batch');
