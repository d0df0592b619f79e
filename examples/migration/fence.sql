SELECT lockfence.attach('schema_version', 'migrations');
SELECT lockfence.fence_ddl('migrations');
