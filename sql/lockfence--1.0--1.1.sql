\echo Use "ALTER EXTENSION lockfence UPDATE TO '1.1'" to load this file. \quit
