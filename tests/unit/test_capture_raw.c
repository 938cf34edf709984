/* SPDX-License-Identifier: MIT */
/* Directories of ring-buffer pages (record --kernel --print-script), /proc/kcore, one-cache recordings. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/import.h"
#include "capture/kcore.h"
#include "capture/tracedat_heap.h"
#include "store/tape.h"

#define PAGE 4096u
#define BASE UINT64_C(0xffff9c0000000000)

static const char formats[] =
	"name: kmalloc\nID: 11\nformat:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
	"\tfield:unsigned long call_site;\toffset:8;\tsize:8;\tsigned:0;\n"
	"\tfield:const void * ptr;\toffset:16;\tsize:8;\tsigned:0;\n"
	"\tfield:size_t bytes_req;\toffset:24;\tsize:8;\tsigned:0;\n"
	"\tfield:size_t bytes_alloc;\toffset:32;\tsize:8;\tsigned:0;\n\n"
	"name: kfree\nID: 12\nformat:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
	"\tfield:unsigned long call_site;\toffset:8;\tsize:8;\tsigned:0;\n"
	"\tfield:const void * ptr;\toffset:16;\tsize:8;\tsigned:0;\n";

struct page {
	uint8_t data[PAGE];
	size_t len;
};

static void put(struct page *p, const void *data, size_t len)
{
	assert_true(p->len + len <= PAGE);
	memcpy(p->data + p->len, data, len);
	p->len += len;
}

static void start_page(struct page *p, uint64_t ts)
{
	const uint64_t commit = 0;

	memset(p, 0, sizeof(*p));
	put(p, &ts, 8);
	put(p, &commit, 8);
}

/* The number of bytes, and @missed lost events in front (0: none). */
static void end_page(struct page *p, uint64_t missed)
{
	uint64_t commit = p->len - 16;

	if (missed) {
		memcpy(p->data + p->len, &missed, 8);
		commit |= UINT64_C(3) << 30;
	}
	memcpy(p->data + 8, &commit, 8);
}

static void event(struct page *p, uint16_t id, uint32_t delta_ns, const uint64_t *words, size_t nr)
{
	uint32_t head = delta_ns << 5 | (uint32_t)(nr + 1) * 2, pid = 77;
	uint16_t flags = 0;

	put(p, &head, 4);
	put(p, &id, 2);
	put(p, &flags, 2);
	put(p, &pid, 4);
	put(p, words, nr * 8);
}

static void put_alloc(struct page *p, uint32_t delta_ns, uint64_t address, uint64_t bytes)
{
	const uint64_t words[] = { 0xffffffff81000010u, address, bytes - 4, bytes };

	event(p, 11, delta_ns, words, 4);
}

static void put_free(struct page *p, uint32_t delta_ns, uint64_t address)
{
	const uint64_t words[] = { 0xffffffff81000020u, address };

	event(p, 12, delta_ns, words, 2);
}

static char dir[32];

static void write_file(const char *name, const void *data, size_t len)
{
	char path[80];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static void write_text(const char *name, const char *text)
{
	write_file(name, text, strlen(text));
}

/* What /proc/kcore begins with: text at the top, memory at BASE. */
static void write_kcore(void)
{
	struct {
		Elf64_Ehdr e;
		Elf64_Phdr p[3];
	} core = { .e = { .e_phoff = sizeof(Elf64_Ehdr), .e_phnum = 3,
			  .e_phentsize = sizeof(Elf64_Phdr) } };

	memcpy(core.e.e_ident, ELFMAG, SELFMAG);
	core.e.e_ident[EI_CLASS] = ELFCLASS64;
	core.p[0].p_type = PT_NOTE;
	core.p[1] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_vaddr = 0xffffffff81000000u,
				  .p_paddr = 0x1000000 };
	core.p[2] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_vaddr = BASE + 0x1000, .p_paddr = 0x1000 };
	write_file("kcore", &core, sizeof(core));
}

static int setup(void **state)
{
	struct page p;

	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/test-raw-XXXXXX");
	assert_non_null(mkdtemp(dir));
	write_text("formats", formats);
	write_text("header_page", "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				  "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n");
	write_text("page_bytes", "4096\n");
	write_text("clock", "mono\n");
	write_text("kallsyms", "ffffffff81000000 T some_function\n");
	write_text("saved_cmdlines", "77 worker\n");
	write_text("topology", "0:0,1:1\n");
	write_text("zoneinfo", "Node 0, zone   Normal\n        spanned  1048576\n  start_pfn:  1\n"
			       "Node 1, zone   Normal\n        spanned  1048576\n"
			       "  start_pfn:  1048577\n");
	write_kcore();
	start_page(&p, 1000);
	put_alloc(&p, 5, BASE + 0x10000, 64);	    /* 1005 */
	put_alloc(&p, 10, BASE + 0x140000000, 128); /* 1015, on node 1 */
	end_page(&p, 0);
	write_file("cpu0.raw", p.data, PAGE);
	start_page(&p, 1000);
	put_free(&p, 7, BASE + 0x10000); /* 1007 */
	put_free(&p, 1, 0);
	end_page(&p, 5);
	write_file("cpu1.raw", p.data, PAGE);
	write_text("cpu0.stats", "entries: 0\noverrun: 0\ndropped events: 0\n");
	write_text("cpu1.stats", "entries: 0\noverrun: 9\ndropped events: 0\n");
	return 0;
}

static int teardown(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command) ? -1 : 0;
}

static int import(struct tape **ret_t, struct capture_stats *stats, struct tape_err *err)
{
	return capture_open_source(dir, NULL, ret_t, stats, err);
}

static void pages_become_rows(void **state)
{
	static const struct {
		uint64_t ts;
		uint8_t op;
		uint16_t cpu;
		int16_t mem_node;
	} want[] = { { 0, TAPE_OP_ALLOC, 0, 0 }, { 2, TAPE_OP_FREE, 1, 0 }, { 10, TAPE_OP_ALLOC, 0, 1 } };
	struct capture_stats stats;
	struct tape_err err = { 0 };
	struct tape_reader *r;
	const struct tape_batch *b;
	struct tape *t;

	(void)state;
	if (import(&t, &stats, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(stats.format, CAPTURE_FORMAT_RAW);
	assert_int_equal(stats.kmalloc, 2);
	assert_int_equal(stats.kfree, 2);
	assert_int_equal(stats.null_frees, 1);
	assert_int_equal(stats.lost, 9); /* 5 that a page tells, 4 that only the stats know */
	assert_int_equal(tape_reader_open(t, &TAPE_RANGE_ALL, ~0u, &r, &err), 0);
	assert_int_equal(tape_reader_next(r, &b, &err), 1);
	assert_int_equal(b->events, 3);
	for (uint32_t i = 0; i < 3; i++) {
		struct tape_event ev;

		tape_batch_get(b, i, &ev);
		assert_int_equal(ev.ts, want[i].ts);
		assert_int_equal(ev.op, want[i].op);
		assert_int_equal(ev.cpu, want[i].cpu);
		assert_int_equal(ev.mem_node, want[i].mem_node);
		assert_int_equal(ev.tid, 77);
	}
	tape_reader_close(r);
	tape_close(t);
}

static void refuse(const char *words, int code)
{
	struct capture_stats stats;
	struct tape_err err = { 0 };
	struct tape *t = NULL;

	assert_int_equal(import(&t, &stats, &err), -code);
	if (!strstr(err.text, words))
		fail_msg("'%s' in: %s", words, err.text);
}

static void bad_directories_are_refused(void **state)
{
	char path[64];
	struct page p;

	(void)state;
	start_page(&p, 1000);
	put_free(&p, 1, BASE);
	end_page(&p, 0);
	p.data[8] = 0xff; /* more bytes than the page has */
	p.data[9] = 0xff;
	write_file("cpu0.raw", p.data, PAGE);
	refuse("CPU 0, offset 0", TAPE_E_FORMAT);
	write_text("page_bytes", "0\n");
	refuse("page_bytes", TAPE_E_FORMAT);
	snprintf(path, sizeof(path), "%s/formats", dir);
	unlink(path);
	write_text("page_bytes", "4096\n");
	refuse("no file formats", TAPE_E_FORMAT);
}

static void kcore_tells_the_direct_map(void **state)
{
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "%s/kcore", dir);
	assert_int_equal(kcore_direct_map(path), BASE);
	write_file("kcore", "\177ELF", 4);
	assert_int_equal(kcore_direct_map(path), 0);
	assert_int_equal(kcore_direct_map("/nosuch"), 0);
}

static void heap_keeps_the_order(void **state)
{
	struct td_stream streams[40], *at[40];
	struct td_heap h = { .at = at };
	uint64_t last = 0, seen = 0, random = 1;

	(void)state;
	memset(streams, 0, sizeof(streams));
	for (uint32_t i = 0; i < 40; i++) {
		streams[i].cpu = i;
		streams[i].ts = (random = random * 6364136223846793005u + 1) >> 60;
		td_heap_push(&h, &streams[i]);
	}
	while (h.nr) {
		struct td_stream *s = h.at[0];
		uint64_t key = s->ts << 8 | s->cpu;

		assert_true(!seen++ || key > last);
		last = key;
		if ((random = random * 6364136223846793005u + 1) >> 62) {
			s->ts += 1 + (random >> 60);
			td_heap_down(&h, 0);
		} else {
			td_heap_pop(&h);
		}
	}
	assert_true(seen > 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(pages_become_rows, setup, teardown),
		cmocka_unit_test_setup_teardown(bad_directories_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(kcore_tells_the_direct_map, setup, teardown),
		cmocka_unit_test(heap_keeps_the_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
