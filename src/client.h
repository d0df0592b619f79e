/*
 * client.h
 *		The client of a session, as shared memory keeps it.
 */
#ifndef LOCKFENCE_CLIENT_H
#define LOCKFENCE_CLIENT_H

/* Longest text kept of an address. */
#define KEPT_ADDRESS_LEN	64

/* How many columns a client has in a row: role, application_name, client_addr, pid. */
#define CLIENT_COLUMNS		4

typedef struct SessionClient
{
	Oid			role;			/* the effective one */
	int			pid;
	char		application_name[NAMEDATALEN];
	char		address[KEPT_ADDRESS_LEN];	/* "": on this machine */
} SessionClient;

extern SessionClient lockfence_this_client(void);
extern void lockfence_update_client(SessionClient *client);
extern void lockfence_client_columns(const SessionClient *client, Datum *values, bool *isnull);

#endif							/* LOCKFENCE_CLIENT_H */
