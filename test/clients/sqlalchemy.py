# The block of docs/clients.md, in a session with a grant.  Prints "done", or "refused" and the SQLSTATE.
import sys

from sqlalchemy import create_engine, event, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

# BLOCK

try:
    with Session(create_engine("postgresql+psycopg2://"), info={"grant": ("settle:batch-9921", int(sys.argv[2]))}) as session:
        session.execute(text("UPDATE batch SET state = 'settled' WHERE batch_id = 9921"))
        session.commit()
    print("done")
except DBAPIError as e:
    print("refused", e.orig.pgcode)
