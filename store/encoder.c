/* SPDX-License-Identifier: MIT */
#include "store/encoder.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Protects submitted, encoded and stop; a leaf lock. */
struct store_encoder {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t worker;
	bool threaded;	    /* read-only after create */
	bool stop;	    /* Sync: lock */
	uint64_t submitted; /* jobs ever submitted.  Sync: lock */
	uint64_t encoded;   /* of these, done.  Sync: lock */
	uint64_t taken;	    /* of these, put.  Sync: appending thread only */
	struct tape_codec *codec; /* Sync: worker only once it runs */
	struct store_encoded jobs[STORE_JOBS]; /* job n is jobs[n % STORE_JOBS]; see encoder.h */
};

/* Copy encoded bytes out of the codec. */
static int column_keep(struct store_column *column, const void *data, size_t bytes)
{
	if (column->room < bytes) {
		void *grown = realloc(column->data, bytes * 2);

		if (!grown)
			return -ENOMEM;
		column->data = grown;
		column->room = bytes * 2;
	}
	if (bytes)
		memcpy(column->data, data, bytes);
	column->bytes = bytes;
	return 0;
}

static int job_encode(struct tape_codec *c, struct store_encoded *job)
{
	for (int col = 0; col < TAPE_COL_MAX; col++) {
		struct store_column *column = &job->columns[col];
		const void *data;
		size_t bytes;
		int rc = tape_column_encode(c, col, job->batch, &data, &bytes, &column->raw_bytes);

		if (rc == 0)
			rc = column_keep(column, data, bytes);
		if (rc < 0)
			return rc;
	}
	store_summary_take(&job->summary, job->batch);
	return 0;
}

static void *worker_main(void *context)
{
	struct store_encoder *e = context;

	pthread_mutex_lock(&e->lock);
	for (;;) {
		struct store_encoded *job = &e->jobs[e->encoded % STORE_JOBS];

		if (e->stop)
			break;
		if (e->encoded == e->submitted) {
			pthread_cond_wait(&e->changed, &e->lock);
			continue;
		}
		pthread_mutex_unlock(&e->lock);
		job->rc = job_encode(e->codec, job);
		pthread_mutex_lock(&e->lock);
		e->encoded++;
		pthread_cond_broadcast(&e->changed);
	}
	pthread_mutex_unlock(&e->lock);
	return NULL;
}

/* Signals stay with the program's own threads. */
static bool worker_start(struct store_encoder *e)
{
	sigset_t all, before;
	bool started;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	started = pthread_create(&e->worker, NULL, worker_main, e) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

struct store_encoder *store_encoder_create(void)
{
	struct store_encoder *e = calloc(1, sizeof(*e));
	bool good;

	if (!e)
		return NULL;
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->changed, NULL);
	e->codec = tape_codec_create();
	good = e->codec != NULL;
	for (uint32_t i = 0; i < STORE_JOBS; i++)
		good &= store_summary_init(&e->jobs[i].summary) == 0;
	if (!good) {
		store_encoder_destroy(e);
		return NULL;
	}
	e->threaded = worker_start(e);
	return e;
}

static void worker_stop(struct store_encoder *e)
{
	pthread_mutex_lock(&e->lock);
	e->stop = true;
	pthread_cond_broadcast(&e->changed);
	pthread_mutex_unlock(&e->lock);
	pthread_join(e->worker, NULL);
}

void store_encoder_destroy(struct store_encoder *e)
{
	if (!e)
		return;
	if (e->threaded)
		worker_stop(e);
	for (uint32_t i = 0; i < STORE_JOBS; i++) {
		tape_batch_destroy(e->jobs[i].batch);
		store_summary_fini(&e->jobs[i].summary);
		for (int col = 0; col < TAPE_COL_MAX; col++)
			free(e->jobs[i].columns[col].data);
	}
	tape_codec_destroy(e->codec);
	pthread_cond_destroy(&e->changed);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

bool store_encoder_full(const struct store_encoder *e)
{
	return e->submitted - e->taken == STORE_JOBS; /* only this thread writes either */
}

void store_encoder_submit(struct store_encoder *e, int64_t id, struct tape_batch *b)
{
	struct store_encoded *job = &e->jobs[e->submitted % STORE_JOBS];

	assert(!store_encoder_full(e) && !job->batch);
	job->batch = b;
	job->id = id;
	if (!e->threaded) {
		job->rc = job_encode(e->codec, job);
		e->encoded++;
	}
	pthread_mutex_lock(&e->lock);
	e->submitted++;
	pthread_cond_broadcast(&e->changed);
	pthread_mutex_unlock(&e->lock);
}

struct store_encoded *store_encoder_take(struct store_encoder *e, bool wait)
{
	struct store_encoded *job = NULL;

	pthread_mutex_lock(&e->lock);
	while (wait && e->taken < e->submitted && e->taken == e->encoded)
		pthread_cond_wait(&e->changed, &e->lock);
	if (e->taken < e->encoded)
		job = &e->jobs[e->taken % STORE_JOBS];
	pthread_mutex_unlock(&e->lock);
	return job;
}

struct tape_batch *store_encoder_put(struct store_encoder *e)
{
	struct store_encoded *job = &e->jobs[e->taken % STORE_JOBS];
	struct tape_batch *b = job->batch;

	assert(b);
	job->batch = NULL;
	e->taken++;
	return b;
}
