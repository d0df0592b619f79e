-- Accounts, and what is posted to them.
CREATE TABLE account (id bigint PRIMARY KEY, balance numeric NOT NULL);
CREATE TABLE posting (account bigint NOT NULL, month date NOT NULL, amount numeric NOT NULL);
INSERT INTO account SELECT n, 1000 FROM generate_series(1, 100) AS n;
