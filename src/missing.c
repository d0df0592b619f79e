/*
 * missing.c
 *		Which commands a fence lets pass without a token, as a setting tells it: "reject",
 *		"allow", or "allow insert, delete".
 *
 * "allow" is all commands whose writes could present a token.  TRUNCATE could on a fence
 * of one resource alone; elsewhere it has to be named.
 */
#include "postgres.h"

#include "lib/stringinfo.h"

#include "missing.h"

static const struct
{
	const char *word;
	WriteCommand command;
}			commands_known[] = {
	{"insert", WRITE_INSERT},
	{"update", WRITE_UPDATE},
	{"delete", WRITE_DELETE},
	{"truncate", WRITE_TRUNCATE}
};

static const char *
skip_blanks(const char *text)
{
	return text + strspn(text, " \t\n\r\f\v");
}

/* Is the word next?  Goes on behind it then, and behind the blanks that follow. */
static bool
take_word(const char **text, const char *word)
{
	size_t		length = strlen(word);

	if (pg_strncasecmp(*text, word, length) != 0 || isalpha((unsigned char) (*text)[length]))
		return false;
	*text = skip_blanks(*text + length);
	return true;
}

/* The command that is named next; 0: none. */
static WriteCommand
take_command(const char **text)
{
	for (int i = 0; i < lengthof(commands_known); i++)
	{
		if (take_word(text, commands_known[i].word))
			return commands_known[i].command;
	}
	return 0;
}

/* A list of commands, with commas in between, to the end of the text; 0: it is none. */
static WriteCommand
read_list(const char *text)
{
	WriteCommand commands = 0;

	for (;;)
	{
		WriteCommand command = take_command(&text);

		if (command == 0)
			return 0;
		commands |= command;
		if (*text == '\0')
			return commands;
		if (*text != ',')
			return 0;
		text = skip_blanks(text + 1);
	}
}

/* Read the setting; false: it is not valid. */
bool
lockfence_read_missing(const char *text, WriteCommand *commands)
{
	const char *rest = skip_blanks(text);

	*commands = 0;
	if (take_word(&rest, MISSING_REJECT))
		return *rest == '\0';
	if (!take_word(&rest, MISSING_ALLOW))
		return false;
	*commands = *rest == '\0' ? WRITE_INSERT | WRITE_UPDATE | WRITE_DELETE : read_list(rest);
	return *commands != 0;
}

/* The setting as it is stored, so that what means the same is the same; NULL: it is not valid. */
const char *
lockfence_missing_text(const char *text)
{
	WriteCommand commands;
	StringInfoData list;
	const char *rest = skip_blanks(text);

	if (!lockfence_read_missing(text, &commands))
		return NULL;
	if (commands == 0)
		return MISSING_REJECT;
	(void) take_word(&rest, MISSING_ALLOW);
	if (*rest == '\0')
		return MISSING_ALLOW;
	initStringInfo(&list);
	for (int i = 0; i < lengthof(commands_known); i++)
	{
		if (commands & commands_known[i].command)
			appendStringInfo(&list, "%s %s", list.len == 0 ? MISSING_ALLOW : ",", commands_known[i].word);
	}
	return list.data;
}
