/*
 * main.c
 *	  pause-certs DIR CLIENTS NAME...: a throw-away authority and its certificates.
 *
 * Writes DIR/ca.pem, DIR/server.pem and .key for 127.0.0.1, and for each NAME and
 * for client-1 .. client-CLIENTS a .pem and .key.  2,000 of them take a second,
 * where 2,000 runs of a command-line tool take a minute.
 */
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *dir;
static EVP_PKEY *ca_key;
static X509 *ca;
static long serial = 1;

static void
die(const char *what)
{
	fprintf(stderr, "pause-certs: %s failed\n", what);
	exit(1);
}

static FILE *
open_file(const char *name, const char *suffix)
{
	char		path[512];
	FILE	   *f;

	snprintf(path, sizeof path, "%s/%s%s", dir, name, suffix);
	f = fopen(path, "w");
	if (f == NULL)
		die(path);
	return f;
}

static void
write_files(const char *name, X509 *cert, EVP_PKEY *key)
{
	FILE	   *f = open_file(name, ".pem");

	PEM_write_X509(f, cert);
	fclose(f);
	f = open_file(name, ".key");
	PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL);
	fclose(f);
}

static void
add_extension(X509 *cert, int nid, const char *value)
{
	X509V3_CTX	ctx;
	X509_EXTENSION *ext;

	X509V3_set_ctx(&ctx, ca ? ca : cert, cert, NULL, NULL, 0);
	ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	if (ext == NULL)
		die("extension");
	X509_add_ext(cert, ext, -1);
	X509_EXTENSION_free(ext);
}

static X509 *
new_cert(const char *name, EVP_PKEY *key)
{
	X509	   *cert = X509_new();
	X509_NAME  *subject = X509_get_subject_name(cert);

	X509_set_version(cert, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), serial++);
	X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
	X509_gmtime_adj(X509_getm_notAfter(cert), 7 * 86400);
	X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *) name, -1, -1, 0);
	X509_set_issuer_name(cert, ca ? X509_get_subject_name(ca) : subject);
	X509_set_pubkey(cert, key);
	return cert;
}

static void
make_ca(void)
{
	X509	   *cert;

	ca_key = EVP_EC_gen("P-256");
	cert = new_cert("pause-kit authority", ca_key);
	add_extension(cert, NID_basic_constraints, "critical,CA:TRUE");
	add_extension(cert, NID_key_usage, "critical,keyCertSign,cRLSign");
	if (X509_sign(cert, ca_key, EVP_sha256()) == 0)
		die("signing");
	ca = cert;
	write_files("ca", ca, ca_key);
}

static void
make_leaf(const char *name, const char *usage, const char *alt)
{
	EVP_PKEY   *key = EVP_EC_gen("P-256");
	X509	   *cert = new_cert(name, key);

	add_extension(cert, NID_ext_key_usage, usage);
	if (alt)
		add_extension(cert, NID_subject_alt_name, alt);
	if (X509_sign(cert, ca_key, EVP_sha256()) == 0)
		die("signing");
	write_files(name, cert, key);
	X509_free(cert);
	EVP_PKEY_free(key);
}

int
main(int argc, char **argv)
{
	if (argc < 3)
	{
		fprintf(stderr, "usage: pause-certs DIR CLIENTS NAME...\n");
		return 64;
	}
	dir = argv[1];
	umask(0077);
	make_ca();
	make_leaf("server", "serverAuth", "IP:127.0.0.1,DNS:localhost");
	for (int i = 3; i < argc; i++)
		make_leaf(argv[i], "clientAuth", NULL);
	for (int i = 1; i <= atoi(argv[2]); i++)
	{
		char		name[32];

		snprintf(name, sizeof name, "client-%d", i);
		make_leaf(name, "clientAuth", NULL);
	}
	return 0;
}
