/*
 * client.c
 *		The client of a session, as shared memory and the log name it, and its
 *		columns in a row.
 *
 * The server lets application_name be ASCII only, so it can be shown in a database
 * of any encoding.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"

#include "client.h"

/* The address of the other end of this session's connection: it never changes. */
static const char *
client_address(void)
{
	static char address[KEPT_ADDRESS_LEN];
	static bool is_known = false;
	LOCAL_FCINFO(fcinfo, 0);
	Datum		inet;

	if (is_known || MyProcPort == NULL)
		return address;
	InitFunctionCallInfoData(*fcinfo, NULL, 0, InvalidOid, NULL, NULL);
	inet = inet_client_addr(fcinfo);
	if (!fcinfo->isnull)
		strlcpy(address, DatumGetCString(DirectFunctionCall1(inet_out, inet)), KEPT_ADDRESS_LEN);
	is_known = true;
	return address;
}

/* The client of this session. */
SessionClient
lockfence_this_client(void)
{
	SessionClient client = {.role = GetUserId(), .pid = MyProcPid};

	strlcpy(client.application_name, application_name ? application_name : "", NAMEDATALEN);
	strlcpy(client.address, client_address(), KEPT_ADDRESS_LEN);
	return client;
}

/* Bring the client of this session up to date, where it is kept: it seldom changes. */
void
lockfence_update_client(SessionClient *client)
{
	if (client->role != GetUserId() || application_name == NULL ||
		strcmp(client->application_name, application_name) != 0)
		*client = lockfence_this_client();
}

/* Its columns in a row. */
void
lockfence_client_columns(const SessionClient *client, Datum *values, bool *isnull)
{
	values[0] = ObjectIdGetDatum(client->role);
	values[1] = CStringGetTextDatum(client->application_name);
	isnull[2] = client->address[0] == '\0';
	values[2] = CStringGetTextDatum(client->address);
	values[3] = Int32GetDatum(client->pid);
}
