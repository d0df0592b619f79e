# The block of docs/clients.md, called as run asks for.  Prints "done", or "refused" and the SQLSTATE.
# BLOCK
export PGUSER PSQLRC=/dev/null
psql() { command psql -q -v VERBOSITY=sqlstate "$@"; }
plain_write="UPDATE batch SET state = 'settled' WHERE batch_id = 9921"
case $1 in
	takeover) take_over "$2" ;;
	settle) settle "$2" ;;
	granted) granted "$2" <<<"$plain_write" ;;
	environment) psql -v ON_ERROR_STOP=1 <<<"$plain_write" ;;
	guarded) psql -v ON_ERROR_STOP=1 -v token="$2" -v key='{"batch_id": 9921}' -v changes='{"state": "settled"}' \
		<<<"SELECT lockfence.guarded_update('batch', :'key', :'changes', :token)" ;;
esac >said 2>&1
status=$?
case $status in
	0) echo done ;;
	3) sed -n 's/.*ERROR:  */refused /p' said ;;
	*) cat said ;;
esac
