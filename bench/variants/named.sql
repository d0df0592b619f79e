-- lockfence, named fence: the statement carries the token in the token column.
SELECT lockfence.attach('target', :'variant' || ':batch-{batch}', token_column => 'fence');
-- each
UPDATE target SET v = :v, fence = :token WHERE id = :id;
