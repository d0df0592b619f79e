/*
 * placeholder.h
 *		Resource templates as text.
 */
#ifndef LOCKFENCE_PLACEHOLDER_H
#define LOCKFENCE_PLACEHOLDER_H

typedef enum TemplatePartKind
{
	TEMPLATE_END,
	TEMPLATE_TEXT,				/* stands as it is */
	TEMPLATE_COLUMN,			/* the value of a column, by the column's name */
	TEMPLATE_FAULT				/* a brace is out of place */
} TemplatePartKind;

extern TemplatePartKind lockfence_next_part(const char **rest, char **part);

#endif							/* LOCKFENCE_PLACEHOLDER_H */
