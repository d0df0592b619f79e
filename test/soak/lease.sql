CALL soak.renew_many(50);
