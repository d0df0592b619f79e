\set kind random(1, 6)
\if :kind = 1
	SELECT soak.write('batch');
\elif :kind = 2
	SELECT soak.write('part');
\elif :kind = 3
	SELECT soak.write('doc');
\elif :kind = 4
	SELECT soak.write('job');
\elif :kind = 5
	SELECT soak.write('guarded');
\else
	SELECT soak.write_once();
\endif
