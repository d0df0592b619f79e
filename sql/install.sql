-- What a new installation needs besides, and an update must not repeat.

SELECT lockfence._record_timeline();
