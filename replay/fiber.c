/* SPDX-License-Identifier: MIT */
#include "replay/fiber.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define FIBER_ASAN 1
#include <sanitizer/common_interface_defs.h>
#else
#define FIBER_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__)
#define FIBER_TSAN 1
#include <sanitizer/tsan_interface.h>
#else
#define FIBER_TSAN 0
#endif
#if !defined(__x86_64__) && !defined(__aarch64__)
#define FIBER_UCONTEXT 1
#include <ucontext.h>
#else
#define FIBER_UCONTEXT 0
#endif

struct fiber {
	void *sp; /* where the callee-saved registers stand while the fiber is stopped */
	void (*fn)(void *arg);
	void *arg;
	char *map; /* guard page and stack; NULL for a thread's own context */
	size_t map_bytes;
	char *stack;
	size_t stack_bytes;
	struct fiber *came_from;
	void *fake_stack; /* AddressSanitizer's */
	void *tsan;
#if FIBER_UCONTEXT
	ucontext_t context;
#endif
};

#if FIBER_ASAN
static void tell_start(struct fiber *from, struct fiber *to)
{
	__sanitizer_start_switch_fiber(&from->fake_stack, to->stack, to->stack_bytes);
}
static void tell_finish(struct fiber *self)
{
	const void *stack;
	size_t bytes;

	__sanitizer_finish_switch_fiber(self->fake_stack, &stack, &bytes);
	/* The first switch away from a thread's own stack tells where that stack is. */
	if (self->came_from && !self->came_from->map) {
		self->came_from->stack = (char *)(uintptr_t)stack;
		self->came_from->stack_bytes = bytes;
	}
}
#else
static void tell_start(struct fiber *from, struct fiber *to)
{
	(void)from;
	(void)to;
}
static void tell_finish(struct fiber *self)
{
	(void)self;
}
#endif

static void fiber_entry(struct fiber *self) __attribute__((noreturn, used));
static void fiber_entry(struct fiber *self)
{
	tell_finish(self);
	self->fn(self->arg);
	abort(); /* @fn returned: a programming error, see fiber_create() */
}

/*
 * Stacks end at the same place in their pages, and what stands at one place in all pages meets in
 * few sets of the first-level cache: each stack begins a little lower than its neighbour's.
 */
static char *stack_top(const struct fiber *f)
{
	return f->stack + f->stack_bytes - ((uintptr_t)f->map >> 12) % 31 * 128;
}

#if defined(__x86_64__)
/* Push the callee-saved registers, change stacks, pop, and jump to where the other one stopped. */
void fiber_swap(void **save_sp, void *load_sp);
__asm__(".text\n"
	".type fiber_swap,@function\n"
	".hidden fiber_swap\n"
	"fiber_swap:\n"
	"	push %rbp\n	push %rbx\n	push %r12\n"
	"	push %r13\n	push %r14\n	push %r15\n"
	"	mov %rsp, (%rdi)\n"
	"	mov %rsi, %rsp\n"
	"	pop %r15\n	pop %r14\n	pop %r13\n"
	"	pop %r12\n	pop %rbx\n	pop %rbp\n"
	"	pop %rcx\n"
	"	jmp *%rcx\n"
	".size fiber_swap,.-fiber_swap\n"
	/* First entry: the fiber waits in r12, the stack is aligned as at a call. */
	".type fiber_first,@function\n"
	".hidden fiber_first\n"
	"fiber_first:\n"
	"	mov %r12, %rdi\n"
	"	call fiber_entry\n"
	"	ud2\n"
	".size fiber_first,.-fiber_first\n");
void fiber_first(void);

static void prepare(struct fiber *f)
{
	/* r15 r14 r13 r12 rbx rbp, then the address to continue at. */
	uint64_t *top = (uint64_t *)(void *)stack_top(f);

	top -= 9; /* after the seven pops the stack pointer is 16-aligned, as before a call */
	top[0] = top[1] = top[2] = 0;
	top[3] = (uint64_t)(uintptr_t)f;
	top[4] = top[5] = 0;
	top[6] = (uint64_t)(uintptr_t)fiber_first;
	f->sp = top;
}
#elif defined(__aarch64__)
void fiber_swap(void **save_sp, void *load_sp);
__asm__(".text\n"
	".type fiber_swap,%function\n"
	".hidden fiber_swap\n"
	"fiber_swap:\n"
	"	sub sp, sp, #160\n"
	"	stp x19, x20, [sp]\n	stp x21, x22, [sp, #16]\n"
	"	stp x23, x24, [sp, #32]\n	stp x25, x26, [sp, #48]\n"
	"	stp x27, x28, [sp, #64]\n	stp x29, x30, [sp, #80]\n"
	"	stp d8, d9, [sp, #96]\n	stp d10, d11, [sp, #112]\n"
	"	stp d12, d13, [sp, #128]\n	stp d14, d15, [sp, #144]\n"
	"	mov x9, sp\n	str x9, [x0]\n	mov sp, x1\n"
	"	ldp x19, x20, [sp]\n	ldp x21, x22, [sp, #16]\n"
	"	ldp x23, x24, [sp, #32]\n	ldp x25, x26, [sp, #48]\n"
	"	ldp x27, x28, [sp, #64]\n	ldp x29, x30, [sp, #80]\n"
	"	ldp d8, d9, [sp, #96]\n	ldp d10, d11, [sp, #112]\n"
	"	ldp d12, d13, [sp, #128]\n	ldp d14, d15, [sp, #144]\n"
	"	add sp, sp, #160\n"
	"	ret\n"
	".size fiber_swap,.-fiber_swap\n"
	".type fiber_first,%function\n"
	".hidden fiber_first\n"
	"fiber_first:\n"
	"	mov x0, x19\n"
	"	bl fiber_entry\n"
	"	brk #1\n"
	".size fiber_first,.-fiber_first\n");
void fiber_first(void);

static void prepare(struct fiber *f)
{
	uint64_t *top = (uint64_t *)(void *)stack_top(f);

	top -= 20;
	for (int i = 0; i < 20; i++)
		top[i] = 0;
	top[0] = (uint64_t)(uintptr_t)f;			/* x19 */
	top[11] = (uint64_t)(uintptr_t)fiber_first; /* x30 */
	f->sp = top;
}
#else
static void enter_context(unsigned int high, unsigned int low)
{
	fiber_entry((struct fiber *)(uintptr_t)((uint64_t)high << 32 | low));
}

static void prepare(struct fiber *f)
{
	uint64_t self = (uint64_t)(uintptr_t)f;

	getcontext(&f->context);
	f->context.uc_stack.ss_sp = f->stack;
	f->context.uc_stack.ss_size = f->stack_bytes;
	makecontext(&f->context, (void (*)(void))enter_context, 2, (unsigned int)(self >> 32),
		    (unsigned int)self);
}
#endif

struct fiber *fiber_create_main(void)
{
	const size_t bytes = (sizeof(struct fiber) + 63) / 64 * 64;
	struct fiber *f = aligned_alloc(64, bytes);

	if (f)
		memset(f, 0, bytes);
#if FIBER_TSAN
	if (f)
		f->tsan = __tsan_get_current_fiber();
#endif
	return f;
}

struct fiber *fiber_create(size_t stack_bytes, void (*fn)(void *arg), void *arg)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct fiber *f = fiber_create_main();
	void *map;

	if (!f)
		return NULL;
	f->fn = fn;
	f->arg = arg;
	f->stack_bytes = (stack_bytes + page - 1) / page * page;
	f->map_bytes = f->stack_bytes + page;
	map = mmap(NULL, f->map_bytes, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED || mprotect(map, page, PROT_NONE) < 0) {
		if (map != MAP_FAILED)
			munmap(map, f->map_bytes);
		free(f);
		return NULL;
	}
	f->map = map;
	f->stack = f->map + page;
#if FIBER_TSAN
	f->tsan = __tsan_create_fiber(0);
#endif
	prepare(f);
	return f;
}

void fiber_destroy(struct fiber *f)
{
	if (!f)
		return;
	if (f->map) {
#if FIBER_TSAN
		__tsan_destroy_fiber(f->tsan);
#endif
		munmap(f->map, f->map_bytes);
	}
	free(f);
}

void fiber_prefetch(const struct fiber *f)
{
	const char *sp = f->sp;

	__builtin_prefetch(sp);
	__builtin_prefetch(sp + 64);
	__builtin_prefetch(sp + 128);
	__builtin_prefetch(sp + 192);
}

void fiber_switch(struct fiber *from, struct fiber *to)
{
	assert(from != to);
	to->came_from = from;
	tell_start(from, to);
#if FIBER_TSAN
	__tsan_switch_to_fiber(to->tsan, 0);
#endif
#if FIBER_UCONTEXT
	swapcontext(&from->context, &to->context);
#else
	fiber_swap(&from->sp, to->sp);
#endif
	tell_finish(from);
}
