/*
 * full.c
 *		A disk that is full, to be preloaded into a server.
 *
 * While the file that FULL_DISK names exists, no file can grow whose path has
 * the text in it that stands there, or, if that begins with "/", ends with it.
 * Writes to what a file has already succeed, as on a real disk.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* The text, or false where the disk has space. */
static int
read_text(char *text, size_t size)
{
	const char *name = getenv("FULL_DISK");
	int			fd = name ? open(name, O_RDONLY) : -1;
	ssize_t		length;

	if (fd < 0)
		return 0;
	length = read(fd, text, size - 1);
	close(fd);
	text[length > 0 ? length : 0] = '\0';
	return length > 0;
}

static int
path_matches(int fd, const char *text)
{
	char		link[64];
	char		path[PATH_MAX];
	ssize_t		length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path) - 1);
	if (length < 0)
		return 0;
	path[length] = '\0';
	if (text[0] != '/')
		return strstr(path, text) != NULL;
	return (size_t) length >= strlen(text) && strcmp(path + length - strlen(text), text) == 0;
}

/* Would the file grow, on a full disk? */
static int
is_full(int fd, off_t end)
{
	int			before = errno;
	char		text[PATH_MAX];
	struct stat status;
	int			full = read_text(text, sizeof(text)) && path_matches(fd, text) &&
		fstat(fd, &status) == 0 && end > status.st_size;

	errno = full ? ENOSPC : before;
	return full;
}

static off_t
total(const struct iovec *iov, int n)
{
	off_t		sum = 0;

	while (n-- > 0)
		sum += iov++->iov_len;
	return sum;
}

#define NEXT(name) ((__typeof__(&name)) dlsym(RTLD_NEXT, #name))

ssize_t
pwrite(int fd, const void *buf, size_t n, off_t offset)
{
	return is_full(fd, offset + (off_t) n) ? -1 : NEXT(pwrite)(fd, buf, n, offset);
}

ssize_t
pwrite64(int fd, const void *buf, size_t n, off64_t offset)
{
	return is_full(fd, offset + (off_t) n) ? -1 : NEXT(pwrite64)(fd, buf, n, offset);
}

ssize_t
pwritev(int fd, const struct iovec *iov, int n, off_t offset)
{
	return is_full(fd, offset + total(iov, n)) ? -1 : NEXT(pwritev)(fd, iov, n, offset);
}

ssize_t
pwritev64(int fd, const struct iovec *iov, int n, off64_t offset)
{
	return is_full(fd, offset + total(iov, n)) ? -1 : NEXT(pwritev64)(fd, iov, n, offset);
}

ssize_t
write(int fd, const void *buf, size_t n)
{
	return is_full(fd, lseek(fd, 0, SEEK_CUR) + (off_t) n) ? -1 : NEXT(write)(fd, buf, n);
}

int
posix_fallocate(int fd, off_t offset, off_t n)
{
	return is_full(fd, offset + n) ? ENOSPC : NEXT(posix_fallocate)(fd, offset, n);
}

int
posix_fallocate64(int fd, off64_t offset, off64_t n)
{
	return is_full(fd, offset + n) ? ENOSPC : NEXT(posix_fallocate64)(fd, offset, n);
}
