SELECT lockfence.attach('payout', 'workers/settle');
