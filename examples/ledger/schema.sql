-- A book's entries of a day are posted in one run, many rows at once.
CREATE TABLE entry (
	book text NOT NULL,
	day date NOT NULL,
	no bigint GENERATED ALWAYS AS IDENTITY,
	amount numeric NOT NULL,
	PRIMARY KEY (book, no)
);
INSERT INTO entry (book, day, amount) VALUES ('eu', '2026-11-29', 1.00);
