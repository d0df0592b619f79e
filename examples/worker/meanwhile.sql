-- The worker has had the job for more than four hours: its time is up.
UPDATE graphile_worker._private_jobs SET locked_at = locked_at - interval '5 hours';
