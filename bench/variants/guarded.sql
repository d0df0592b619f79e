-- lockfence, named fence: token and write in one call.
SELECT lockfence.attach('target', :'variant' || ':batch-{batch}', token_column => 'fence');
-- each
SELECT lockfence.guarded_update('target', :key, :changes, :token);
