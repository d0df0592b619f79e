-- lockfence: the next token, given and presented in one call; nothing is written but the mark.
-- each
SELECT lockfence.issue(:resource);
