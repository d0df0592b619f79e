-- One job at a time writes the whole table: a constant, decided once per statement, however many rows it writes.
SELECT lockfence.attach('report', 'jobs/nightly-report');
