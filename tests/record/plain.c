/* SPDX-License-Identifier: MIT */
/* Allocates a little and, when told so, ends in an unusual way.  usage: plain [HOW] */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";

	for (int i = 0; i < 1000; i++) {
		void *volatile p = malloc(50);

		if (i % 10)
			free(p);
	}
	puts("done");
	fflush(stdout);
	if (!strcmp(how, "exit7"))
		return 7;
	if (!strcmp(how, "kill"))
		raise(SIGKILL);
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "_exit"))
		_exit(3);
	if (!strcmp(how, "closeall"))
		for (int fd = 3; fd < 1024; fd++)
			close(fd);
	if (!strcmp(how, "closerange"))
		close_range(3, ~0U, 0);
	if (!strcmp(how, "sleep"))
		for (int i = 0; i < 600; i++) {
			free(malloc(100));
			usleep(100000);
		}
	free(malloc(10));
	return 0;
}
