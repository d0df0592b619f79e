# The block of docs/clients.md, called as run asks for.  Prints "done", or "refused" and the SQLSTATE.
import os
import sys

if os.environ["CLIENT"] == "psycopg2":
    import psycopg2 as psycopg
else:
    import psycopg

# BLOCK

def write(connection):
    with transaction(connection):
        connection.cursor().execute("UPDATE batch SET state = 'settled' WHERE batch_id = 9921")

def guarded(connection, token):
    with transaction(connection):
        connection.cursor().execute("SELECT lockfence.guarded_update('batch', %s, %s, %s)",
                                    ('{"batch_id": 9921}', '{"state": "settled"}', token))

def transaction(connection):
    return connection.transaction() if hasattr(connection, "transaction") else connection

what, token = sys.argv[1], int(sys.argv[2])
connection = connect_granted(token) if what == "granted" else psycopg.connect("")
try:
    {"takeover": lambda: take_over(connection, token), "settle": lambda: settle(connection, token),
     "granted": lambda: write(connection), "environment": lambda: write(connection),
     "guarded": lambda: guarded(connection, token)}[what]()
    print("done")
except psycopg.Error as e:
    print("refused", e.sqlstate if hasattr(e, "sqlstate") else e.pgcode)
    with transaction(connection):
        connection.cursor().execute("SELECT 1")
