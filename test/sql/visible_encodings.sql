-- Controls in the upper half of an encoding's characters are made visible, in those encodings that have some there.
\pset format unaligned
\pset tuples_only on
\set this :DBNAME
SELECT format('CREATE DATABASE visible_%s TEMPLATE template0 ENCODING %L LC_COLLATE ''C'' LC_CTYPE ''C''', lower(name), name) AS statement
FROM unnest('{LATIN1,LATIN10,ISO_8859_5,ISO_8859_8,SQL_ASCII,WIN1258,KOI8U}'::text[]) AS name \gexec
-- in each: which are
\set count 'CREATE FUNCTION visible(text) RETURNS text LANGUAGE c AS ''lockfence'', ''lockfence_visible_sql''; SELECT to_hex(min(code)), to_hex(max(code)), count(*) FROM generate_series(128, 255) AS code WHERE visible(chr(code)) <> chr(code);'
\c visible_latin1
:count
\c visible_latin10
:count
\c visible_iso_8859_5
:count
\c visible_iso_8859_8
:count
\c visible_sql_ascii
:count
\c visible_win1258
:count
\c visible_koi8u
:count
\c :this
DROP DATABASE visible_latin1;
DROP DATABASE visible_latin10;
DROP DATABASE visible_iso_8859_5;
DROP DATABASE visible_iso_8859_8;
DROP DATABASE visible_sql_ascii;
DROP DATABASE visible_win1258;
DROP DATABASE visible_koi8u;
