-- One lock per book, and rows come and go: a fence with a name. Each row shows which grant posted it.
SELECT lockfence.attach('entry', 'ledger:{book}', token_column => 'fence');
