/*
 * call.c
 *	  pause-call URL CA CERT KEY [JSON]: one request to the lock service.
 *
 * Prints the HTTP status (000: none came) and, on a line of its own, the body.
 */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>

#include "fetch.h"

int
main(int argc, char **argv)
{
	fetch_identity identity = {0};
	fetch_answer answer;
	fetch	   *f;
	json_t	   *body;
	char	   *text;

	if (argc < 5)
	{
		fprintf(stderr, "usage: pause-call URL CA CERT KEY [JSON]\n");
		return 64;
	}
	identity = (fetch_identity) {argv[2], argv[3], argv[4], NULL};
	curl_global_init(CURL_GLOBAL_ALL);
	f = fetch_open(&identity);
	body = argc > 5 && *argv[5] ? json_loads(argv[5], 0, NULL) : NULL;
	if (fetch_json(f, argv[1], body, 30000, &answer) != FETCH_ANSWERED)
		fprintf(stderr, "%s\n", answer.error);
	text = answer.json ? json_dumps(answer.json, JSON_COMPACT) : NULL;
	printf("%03d\n%s\n", answer.status, text ? text : "{}");
	return answer.status == 0;
}
