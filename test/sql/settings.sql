-- The settings, as docs/reference.md has them: defaults and limits.
LOAD 'lockfence';
SELECT name, vartype, boot_val, min_val, max_val, unit, enumvals FROM pg_settings
WHERE name LIKE 'lockfence.%' ORDER BY name COLLATE "C";
SELECT name, context FROM pg_settings WHERE name LIKE 'lockfence.%' AND vartype <> 'integer' ORDER BY name COLLATE "C";
