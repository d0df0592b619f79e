-- lockfence, row fence: the mark is in the row.
SELECT lockfence.attach('target');
-- each
UPDATE target SET v = :v, fence = :token WHERE id = :id;
