INSERT INTO shop_order VALUES ('eu', 50);
