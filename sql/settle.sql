-- ---------------------------------------------------------------- what a script leaves to whom

-- Default privileges (ALTER DEFAULT PRIVILEGES) of the role that runs this script have given to others, or kept from
-- PUBLIC, what the parts before do not speak of.  So here, behind all parts, whatever is new gets what the parts mean.
-- They have granted or revoked where PostgreSQL has put initial privileges on record: of a function PUBLIC has then
-- what they left it, and of a table PUBLIC, or else pg_monitor, what they may read.  Of all else PUBLIC has what PostgreSQL
-- gives it, and others have nothing.  What was there before this script keeps what administrators have granted.

CREATE FUNCTION lockfence._settle_privileges()
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	old text[] := current_setting('lockfence_script.old');
	open text[] := current_setting('lockfence_script.open');
	step text;
BEGIN
	FOR step IN
		SELECT format('GRANT ALL ON %s %s TO PUBLIC', o.kind, o.name)
		FROM lockfence._own_objects(ARRAY[current_setting('lockfence_script.extension')]) o
		WHERE o.kind IN ('FUNCTION', 'TYPE') AND NOT EXISTS (SELECT FROM aclexplode(o.acl) AS a WHERE a.grantee = 0)
			AND CASE WHEN format('%s:%s', o.catalog, o.id) = ANY (old) THEN format('%s:%s', o.catalog, o.id) = ANY (open) ELSE o.initial IS NULL END
		UNION ALL
		SELECT DISTINCT format('REVOKE %s ON %s %s FROM %s', a.privilege_type, o.kind, o.name, lockfence._grantee(a.grantee))
		FROM lockfence._own_objects(ARRAY[current_setting('lockfence_script.extension')]) o CROSS JOIN LATERAL aclexplode(o.acl) AS a
		WHERE format('%s:%s', o.catalog, o.id) <> ALL (old) AND a.grantee <> o.owner AND NOT CASE
			WHEN o.kind IN ('FUNCTION', 'TYPE') THEN a.grantee = 0
			ELSE o.initial IS NOT NULL AND a.privilege_type = 'SELECT' AND (a.grantee = 0 OR a.grantee = 'pg_monitor'::regrole
				AND NOT EXISTS (SELECT FROM aclexplode(o.acl) AS p WHERE p.grantee = 0 AND p.privilege_type = 'SELECT')) END
	LOOP
		EXECUTE step;
	END LOOP;
END
$$;

SELECT lockfence._settle_privileges();
DROP FUNCTION lockfence._settle_privileges();
