-- ---------------------------------------------------------------- issuing

CREATE FUNCTION lockfence.issue(resource text)
RETURNS lockfence.fence_token
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'lockfence_issue';
COMMENT ON FUNCTION lockfence.issue(text) IS
'issues the next token of a resource, one above its mark, and presents it in this transaction. From the commit on, holders of lower tokens are refused. LF003 if the epoch has none left, LF005 if the fence is sealed. Example: SELECT lockfence.issue(''settle:batch-9921'')';

-- Like present(), it shuts out the previous holder.
REVOKE ALL ON FUNCTION lockfence.issue(text) FROM PUBLIC;
