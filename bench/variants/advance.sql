-- lockfence, named fence: every write is a new holder's first.
SELECT lockfence.attach('target', :'variant' || ':batch-{batch}', token_column => 'fence');
-- each
UPDATE target SET v = :v, fence = :next WHERE id = :id;
