-- lockfence: a new holder presents its token, and nothing else.
-- each
SELECT lockfence.present(:resource, :next);
