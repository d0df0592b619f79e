-- Orders of the shop, and the report that a nightly job makes of them anew.
CREATE TABLE shop_order (region text NOT NULL, amount numeric NOT NULL);
CREATE TABLE report (region text PRIMARY KEY, total numeric NOT NULL);
INSERT INTO shop_order VALUES ('eu', 100), ('us', 100);
INSERT INTO report VALUES ('eu', 0), ('us', 0);
