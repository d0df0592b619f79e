-- Prices in cents.
ALTER TABLE price ALTER amount TYPE bigint USING amount * 100;
