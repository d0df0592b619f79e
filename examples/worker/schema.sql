-- What the jobs of a queue pay out.  The queue's own tables are made by its library.
CREATE TABLE payout (job bigint NOT NULL, amount numeric NOT NULL);
