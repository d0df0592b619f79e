-- lockfence, named fence: the token is the session's grant, and the statement is that without a fence.
SELECT lockfence.attach('target', :'variant' || ':batch-{batch}');
-- connect options='-c lockfence.session_grant=5'
-- each
UPDATE target SET v = :v WHERE id = :id;
