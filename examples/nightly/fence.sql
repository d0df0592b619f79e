-- One job at a time writes the whole table: a constant. Decided once a statement, however many rows it writes.
SELECT lockfence.attach('report', 'jobs/nightly-report');
