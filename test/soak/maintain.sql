SELECT lockfence.prune('5 seconds');
VACUUM lockfence.mark, lockfence.state, soak.refused, soak.job, soak.doc;
ANALYZE lockfence.mark;
