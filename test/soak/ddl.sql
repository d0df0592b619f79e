SELECT soak.ddl();
SELECT lockfence.reconcile('soak.part');
