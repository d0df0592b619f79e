/*
 * page.c
 *	  The words and the frame of the report.
 */
#include <string.h>

#include "page.h"
#include "svg.h"

static const char style[] =
"body{font:15px/1.5 system-ui,sans-serif;color:#1b1f24;max-width:1100px;margin:2em auto;padding:0 1em}"
"h1{font-size:1.6em;margin-bottom:.2em}h2{margin-top:2.2em;border-top:1px solid #ccc;padding-top:.8em;font-size:1.25em}"
".sum{font-size:1.15em;font-weight:600}.good{color:#1a7f37}.bad{color:#cf222e}"
"table{border-collapse:collapse;width:100%;margin:1em 0}th,td{text-align:left;vertical-align:top;padding:.4em .6em;border-bottom:1px solid #ddd}"
"th{font-weight:600;background:#f4f5f7}td.v{white-space:nowrap;font-weight:600}"
"dl{display:grid;grid-template-columns:max-content 1fr;gap:.1em 1em;color:#555;font-size:.92em}dt{font-weight:600}dd{margin:0}"
"figure{margin:1.6em 0}figcaption,.caption{font-weight:600;margin:.8em 0 .2em}.caption{font-weight:400;color:#555}"
"svg{width:100%;height:auto;display:block;font:12px system-ui,sans-serif}"
".legend span{display:inline-block;margin-right:1.4em}.key{width:18px;height:18px;display:inline-block;vertical-align:-4px;margin-right:5px}"
".lane0{fill:#f7f8fa}.lane1{fill:#eef0f3}.grid{stroke:#d5d8dd;stroke-width:1}.tick{fill:#666;text-anchor:middle}"
".name{text-anchor:end;fill:#333}.bar{stroke:#fff;stroke-width:.6}.inbar{fill:#fff;font-size:11.5px}"
".bandname{fill:#555;font-size:11px}.cut{fill:#f2b8b5;fill-opacity:.45}.sealed{fill:#f6d98b;fill-opacity:.4}"
".event{stroke:#444;stroke-dasharray:4 3}.stopped{fill:url(#stopped);stroke:#444;stroke-width:1}"
".stoppedname{font-weight:600;fill:#333}.belief{fill:#7a1f1f;font-size:11.5px}"
".accepted{fill:#1a7f37;stroke:#fff;stroke-width:1}.refused{fill:none;stroke:#cf222e;stroke-width:3.2}"
".present{fill:#0b57d0;stroke:#fff;stroke-width:1}.fence{fill:#e36209;stroke:#fff;stroke-width:1}"
".ended{fill:#8250df;stroke:#fff;stroke-width:1}.denied{fill:#fff;stroke:#9a6700;stroke-width:2}"
".holding{fill:#4c78a8;fill-opacity:.35;stroke:#4c78a8}.renewed{fill:none;stroke:#b2560d;stroke-width:1.4}"
".holdingname{fill:#3b6390}.renewedname{fill:#b2560d}"
"@media print{h2{break-before:page}}";

static const struct
{
	const char *title;
	const char *story;
}			proofs[] = {
	{"", ""},
	{"Proof 1: a holder is stopped past its lease and then writes",
		"A process takes the lock, reads, checks that it still holds the lock, and is stopped (SIGSTOP) just "
		"before it writes, for twice as long as its lease lasts. It cannot learn that the lease ran out, "
		"because it does not run. Meanwhile another process is granted the lock, presents its higher token to "
		"PostgreSQL and writes. Then the first one continues, and writes as if nothing had happened. That write "
		"must be refused (red cross). It is tried outside a transaction, in one that has only read, in one that "
		"already holds the resource in PostgreSQL (the fence must end that one, or the successor would wait for "
		"a stopped process), and with <code>etcdctl lock</code>, a client that knows nothing of lockfence. "
		"A control repeats the first case on a table without a fence: there the stale write is accepted, which "
		"shows that the trial can fail and that the checker notices."},
	{"Proof 2: the leader of the quorum is cut off while locks are granted",
		"Three etcd members run in a network namespace each. Eight clients take four locks in turn and write to "
		"PostgreSQL. Again and again the leader's answers are dropped, and then its link goes down, so that some "
		"requests are done but not answered. No lock may ever have two holders, no write of a superseded holder "
		"may be accepted, and grants must resume within three seconds."},
	{"Proof 3: the quorum is destroyed and an old snapshot restored",
		"A restored etcd has forgotten every grant since the snapshot, would issue the same revisions again, and "
		"holds locks that were released long ago. The service must notice it, and serve nothing (yellow) until an "
		"operator advances the epoch; the first token after that must be above every token ever issued, and "
		"PostgreSQL must refuse writes under earlier tokens."},
	{"Proof 4: every client is killed at once and started again",
		"Each client has a certificate, a session and a lock of its own. After the kill, the dead clients' locks "
		"stay held until their leases run out, and all new clients ask at the same time. Each must get its lock, "
		"and the service must turn away acquires but not one renewal, since a lost renewal is a lost lock."},
	{"Proof 5: leases of PostgreSQL, with no lock service",
		"The pauses of proof 1 again, with leases that PostgreSQL grants itself (<code>lockfence_lease</code>). The "
		"grant presents the token: the stopped holder is out from its commit on, also if the successor has done "
		"nothing yet. Then several clients take one lease in turn. Two controls sabotage it: with the fence "
		"bypassed the stale write is accepted, and where a living lease is cut short by hand there are two "
		"holders at once. The checker must find both; in the second case the stale write is refused all the same."},
};

void
page_begin(FILE *out, int held, int failed, int not_run)
{
	fprintf(out, "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
			"<meta name='viewport' content='width=device-width'><title>lockfence: the pause kit's report</title>"
			"<style>%s</style></head><body><h1>Does PostgreSQL refuse a lock holder that was superseded?</h1>"
			"<p class='sum %s'>", style, failed ? "bad" : "good");
	if (failed)
		fprintf(out, "%d of %d cases FAIL.", failed, held + failed);
	else if (held == 1)
		fputs("The one case that was tried holds.", out);
	else
		fprintf(out, "All %d cases that were tried hold.", held);
	if (not_run)
		fprintf(out, " %d could not be tried.", not_run);
	fputs("</p><p>A lock service gives each holder a <em>token</em> that only goes up. A holder that is paused "
		  "past its lease does not know that another holder has the lock, and writes nevertheless. With lockfence "
		  "PostgreSQL keeps the highest accepted token (the <em>mark</em>) and refuses a write below it. This "
		  "report shows that with real processes, real lock services and a real PostgreSQL. Every operation was "
		  "recorded, and a checker decided whether the record fits an exclusive lock and a fenced row.</p><dl>",
		  out);
}

void
page_fact(FILE *out, const char *name, const char *value)
{
	fputs("<dt>", out);
	svg_text(out, name);
	fputs("</dt><dd>", out);
	svg_text(out, value);
	fputs("</dd>", out);
}

void
page_begin_proofs(FILE *out)
{
	fputs("</dl>\n<p>Signs used in the pictures (point at one for its details):</p>", out);
}

void
page_begin_proof(FILE *out, int proof)
{
	if (proof < (int) (sizeof proofs / sizeof *proofs))
		fprintf(out, "<h2>%s</h2><p>%s</p>", proofs[proof].title, proofs[proof].story);
	fputs("<table><tr><th>case</th><th>expected</th><th>seen</th><th>verdict</th></tr>\n", out);
}

void
page_row(FILE *out, char **fields)
{
	fputs("<tr>", out);
	for (int i = 1; i < 4; i++)
	{
		fputs("<td>", out);
		svg_text(out, fields[i]);
		fputs("</td>", out);
	}
	fprintf(out, "<td class='v %s'>%s</td></tr>\n",
			strcmp(fields[4], "holds") == 0 ? "good" : strcmp(fields[4], "FAILS") == 0 ? "bad" : "", fields[4]);
}

void
page_end_table(FILE *out)
{
	fputs("</table>\n", out);
}

void
page_end(FILE *out)
{
	fputs("</body></html>\n", out);
}

const char *
page_history_title(const char *file)
{
	static const char *const titles[][2] = {
		{"1-between.jsonl", "Stopped outside a transaction"},
		{"1-open-read.jsonl", "Stopped in a transaction that has read"},
		{"1-open-held.jsonl", "Stopped in a transaction that holds the resource"},
		{"1-etcdctl.jsonl", "Stopped under etcdctl lock"},
		{"1-control.jsonl", "Control: the same without a fence, where the stale write is accepted"},
		{"2-partition.jsonl", "The locks, and when the leader was cut off"},
		{"3-restore.jsonl", "Before and after each disaster"},
		{"5-between.jsonl", "Stopped outside a transaction"},
		{"5-open-read.jsonl", "Stopped in a transaction that has read"},
		{"5-open-held.jsonl", "Stopped in a transaction that holds the resource"},
		{"5-idle.jsonl", "Stopped; the successor has done nothing but acquire"},
		{"5-bypass.jsonl", "Control: the fence is bypassed, and the stale write is accepted"},
		{"5-cut-short.jsonl", "Control: a living lease is cut short by hand, and the write refused all the same"},
		{"5-turns.jsonl", "Clients that take one lease in turn"},
		{"4-storm.jsonl", "Clients that hold their lock, and renewals answered"},
	};

	for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
		if (strcmp(file, titles[i][0]) == 0)
			return titles[i][1];
	return "";
}
