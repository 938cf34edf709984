-- SPDX-License-Identifier: MIT
-- The schema of a tape, version 1 (docs/tape-format.md).  Every statement is part of the file
-- format: tape_open() compares the text in a tape with this one, name by name.

CREATE TABLE meta(
	key TEXT NOT NULL PRIMARY KEY,
	value
) WITHOUT ROWID;

CREATE TABLE cpu(
	cpu INTEGER PRIMARY KEY,
	node INTEGER NOT NULL
);

CREATE TABLE cache(
	cache INTEGER PRIMARY KEY,
	name TEXT NOT NULL,
	object_size INTEGER NOT NULL,
	align INTEGER NOT NULL,
	flags INTEGER NOT NULL,
	coverage REAL NOT NULL
);

CREATE TABLE cache_knob(
	cache INTEGER NOT NULL,
	knob TEXT NOT NULL,
	value TEXT NOT NULL,
	UNIQUE(cache, knob)
);

CREATE TABLE site(
	site INTEGER PRIMARY KEY,
	address INTEGER NOT NULL,
	symbol TEXT,
	module TEXT,
	offset INTEGER NOT NULL
);

CREATE TABLE thread(
	tid INTEGER PRIMARY KEY,
	pid INTEGER NOT NULL,
	comm TEXT
);

CREATE TABLE loss(
	cpu INTEGER,
	ts_begin INTEGER NOT NULL,
	ts_end INTEGER NOT NULL,
	events INTEGER NOT NULL,
	reason TEXT NOT NULL
);

CREATE TABLE marker(
	seq INTEGER PRIMARY KEY,
	ts INTEGER NOT NULL,
	cpu INTEGER NOT NULL,
	name TEXT NOT NULL
);

CREATE TABLE chunk(
	id INTEGER PRIMARY KEY,
	cpu INTEGER,
	cpu_mask INTEGER NOT NULL,
	first_seq INTEGER NOT NULL,
	last_seq INTEGER NOT NULL,
	ts_min INTEGER NOT NULL,
	ts_max INTEGER NOT NULL,
	events INTEGER NOT NULL,
	bytes_raw INTEGER NOT NULL,
	bytes INTEGER NOT NULL,
	columns INTEGER NOT NULL,
	first_object INTEGER,
	last_object INTEGER,
	slots INTEGER NOT NULL,
	inferred_allocs INTEGER NOT NULL,
	inferred_frees INTEGER NOT NULL,
	orphan_frees INTEGER NOT NULL,
	null_frees INTEGER NOT NULL,
	failed_allocs INTEGER NOT NULL,
	caches BLOB NOT NULL
);

CREATE TABLE chunk_stat(
	id INTEGER PRIMARY KEY,
	chunk INTEGER NOT NULL,
	cpu INTEGER NOT NULL,
	cache INTEGER,
	op TEXT NOT NULL,
	events INTEGER NOT NULL,
	bytes INTEGER NOT NULL
);

CREATE TABLE chunk_column(
	id INTEGER PRIMARY KEY,
	data BLOB NOT NULL
);

CREATE TABLE far_free(
	id INTEGER PRIMARY KEY,
	frees INTEGER NOT NULL,
	data BLOB NOT NULL
);

CREATE TABLE run(
	run INTEGER PRIMARY KEY,
	variant TEXT NOT NULL,
	mode TEXT NOT NULL,
	cpus INTEGER NOT NULL,
	nodes INTEGER NOT NULL,
	seed INTEGER NOT NULL,
	started TEXT,
	elapsed_ns INTEGER,
	ops INTEGER,
	tool_version TEXT NOT NULL,
	args TEXT,
	truncated_seq INTEGER
);

CREATE TABLE run_cpu(
	run INTEGER NOT NULL,
	cpu INTEGER NOT NULL,
	node INTEGER NOT NULL,
	PRIMARY KEY(run, cpu)
) WITHOUT ROWID;

CREATE TABLE run_knob(
	run INTEGER NOT NULL,
	cache TEXT NOT NULL,
	knob TEXT NOT NULL,
	value TEXT NOT NULL
);

CREATE TABLE counter(
	run INTEGER NOT NULL,
	cache INTEGER NOT NULL,
	cpu INTEGER,
	name TEXT NOT NULL,
	value INTEGER NOT NULL
);
CREATE INDEX counter_by_run ON counter(run, cache);

CREATE TABLE free_class(
	run INTEGER NOT NULL,
	cache INTEGER NOT NULL,
	class TEXT NOT NULL,
	count INTEGER NOT NULL
);

CREATE TABLE lock(
	run INTEGER NOT NULL,
	cache INTEGER NOT NULL,
	node INTEGER NOT NULL,
	lock TEXT NOT NULL,
	path TEXT NOT NULL,
	acquisitions INTEGER NOT NULL,
	contended INTEGER NOT NULL,
	try_failed INTEGER NOT NULL,
	wait_ns INTEGER NOT NULL,
	hold_ns INTEGER NOT NULL,
	max_wait_ns INTEGER NOT NULL,
	max_queue INTEGER NOT NULL,
	handover_same_node INTEGER NOT NULL,
	handover_remote INTEGER NOT NULL
);

CREATE TABLE sample(
	run INTEGER NOT NULL,
	ts INTEGER NOT NULL,
	vts INTEGER NOT NULL,
	cache INTEGER NOT NULL,
	node INTEGER NOT NULL,
	slabs INTEGER NOT NULL,
	partial INTEGER NOT NULL,
	cpu_partial_slabs INTEGER NOT NULL,
	objects_inuse INTEGER NOT NULL,
	objects_total INTEGER NOT NULL,
	cached_objs INTEGER NOT NULL,
	full_sheaves INTEGER NOT NULL,
	empty_sheaves INTEGER NOT NULL
);

CREATE TABLE run_chunk(
	id INTEGER PRIMARY KEY,
	run INTEGER NOT NULL,
	kind TEXT NOT NULL,
	rows INTEGER NOT NULL,
	first_seq INTEGER NOT NULL,
	last_seq INTEGER NOT NULL,
	ts_min INTEGER NOT NULL,
	ts_max INTEGER NOT NULL
);

CREATE TABLE run_column(
	id INTEGER PRIMARY KEY,
	data BLOB NOT NULL
);
