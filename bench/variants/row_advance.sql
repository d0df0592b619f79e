-- lockfence, row fence: every write is a new holder's first.
SELECT lockfence.attach('target');
-- each
UPDATE target SET v = :v, fence = :next WHERE id = :id;
