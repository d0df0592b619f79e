SELECT lockfence.attach('posting', 'jobs/interest');
