-- After the privileges are settled: what pg_monitor may execute, and PUBLIC may not.

GRANT EXECUTE ON FUNCTION lockfence._refusals(), lockfence._offenders(), lockfence._takeovers() TO pg_monitor;
