-- ---------------------------------------------------------------- holders

-- Field 4 of the locks is the class that lockfence uses, 0x4C46.  A transaction
-- that advances a mark, or holds it by its tuple, keeps a lock on the table of
-- marks instead.  A prepared transaction is known by the lock on its own id.
CREATE VIEW lockfence.prepared_holds AS
SELECT p.gid, p.owner, p.prepared, l.database, l.classid, l.objid, l.objsubid
FROM pg_catalog.pg_locks l
	JOIN pg_catalog.pg_locks x
		ON x.virtualtransaction OPERATOR(pg_catalog.=) l.virtualtransaction
		AND x.pid IS NULL AND x.locktype OPERATOR(pg_catalog.=) 'transactionid'
	JOIN pg_catalog.pg_prepared_xacts p
		ON p.transaction OPERATOR(pg_catalog.=) x.transactionid
WHERE l.pid IS NULL AND (
	(l.locktype OPERATOR(pg_catalog.=) 'advisory'
		AND l.objsubid OPERATOR(pg_catalog.=) 19526)
	OR (l.locktype OPERATOR(pg_catalog.=) 'relation'
		AND l.relation OPERATOR(pg_catalog.=) 'lockfence.mark'::pg_catalog.regclass
		AND l.mode OPERATOR(pg_catalog.=) ANY (ARRAY['RowShareLock', 'RowExclusiveLock'])
		AND l.database OPERATOR(pg_catalog.=) (
			SELECT d.oid FROM pg_catalog.pg_database d
			WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database())));
COMMENT ON VIEW lockfence.prepared_holds IS
'prepared transactions that hold a fenced resource until COMMIT PREPARED or ROLLBACK PREPARED, with the identity of the lock; null if they hold the mark itself';
GRANT SELECT ON lockfence.prepared_holds TO PUBLIC;
