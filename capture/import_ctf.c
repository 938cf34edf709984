/* SPDX-License-Identifier: MIT */
/*
 * CTF recordings of the kernel (lttng-modules' kmem events), read through libbabeltrace2:
 * source.ctf.fs -> filter.utils.muxer -> our sink.
 *
 * The muxer orders events of all CPUs by time.  Fields are found by name once per event class.
 */
#include <babeltrace2/babeltrace.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "capture/gfp.h"
#include "capture/import_internal.h"
#include "capture/ingest.h"
#include "capture/source.h"
#include "store/tape.h"

#define CTF_CLASSES_MAX 4096 /* limit of event classes of one recording */

enum ctf_kind { CTF_OTHER, CTF_KMALLOC, CTF_CACHE_ALLOC, CTF_KFREE, CTF_CACHE_FREE };

enum ctf_field {
	CTF_SITE = 0,
	CTF_PTR,
	CTF_BYTES_REQ,
	CTF_BYTES_ALLOC,
	CTF_GFP,
	CTF_NODE,
	CTF_ACCOUNTED,
	CTF_NAME,
	CTF_FIELD_MAX
};

static const char *const field_names[CTF_FIELD_MAX] = {
	"call_site", "ptr", "bytes_req", "bytes_alloc", "gfp_flags", "node", "accounted", "name",
};

/* One event class: what it is and at which index its fields stand (-1: not there). */
struct ctf_class {
	const bt_event_class *event_class; /* borrowed, only compared */
	enum ctf_kind kind;
	int index[CTF_FIELD_MAX];
};

struct ctf_import {
	const struct import_job *job;
	const char *path;
	struct ingest *ing;
	bt_message_iterator *iterator; /* owned by the graph */
	struct ctf_class *classes;
	size_t classes_nr;
	const struct ctf_class *last;
	struct capture_gfp_map gfp;
	bool release_known;
	int rc; /* first failure of ours */
	struct tape_err err;
};

static enum ctf_kind kind_of(const char *name)
{
	static const struct {
		const char *name;
		enum ctf_kind kind;
	} kinds[] = {
		{ "kmem_kmalloc", CTF_KMALLOC },
		{ "kmem_kmalloc_node", CTF_KMALLOC },
		{ "kmem_cache_alloc", CTF_CACHE_ALLOC },
		{ "kmem_cache_alloc_node", CTF_CACHE_ALLOC },
		{ "kmem_kfree", CTF_KFREE },
		{ "kmem_cache_free", CTF_CACHE_FREE },
	};

	for (size_t i = 0; name && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(name, kinds[i].name))
			return kinds[i].kind;
	return CTF_OTHER;
}

static bool is_unsigned(const bt_field *f)
{
	return bt_field_class_type_is(bt_field_get_class_type(f),
				      BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER);
}

/* An integer field's value; @fallback when @f is NULL or no integer. */
static int64_t integer_of(const bt_field *f, int64_t fallback)
{
	if (!f)
		return fallback;
	if (is_unsigned(f))
		return (int64_t)bt_field_integer_unsigned_get_value(f);
	if (bt_field_class_type_is(bt_field_get_class_type(f), BT_FIELD_CLASS_TYPE_SIGNED_INTEGER))
		return bt_field_integer_signed_get_value(f);
	return fallback;
}

static const bt_field *member(const bt_field *structure, const char *name)
{
	return structure ? bt_field_structure_borrow_member_field_by_name_const(structure, name)
			 : NULL;
}

static int learn_class(struct ctf_import *im, const bt_event_class *event_class)
{
	const bt_field_class *payload = bt_event_class_borrow_payload_field_class_const(event_class);
	uint64_t members = payload ? bt_field_class_structure_get_member_count(payload) : 0;
	struct ctf_class *c;

	if (im->classes_nr == CTF_CLASSES_MAX)
		return tape_err_set(&im->err, -TAPE_E_LIMIT, "CTF (%s): more than %d event classes",
				    im->path, CTF_CLASSES_MAX);
	c = &im->classes[im->classes_nr++];
	c->event_class = event_class;
	c->kind = kind_of(bt_event_class_get_name(event_class));
	for (int i = 0; i < CTF_FIELD_MAX; i++)
		c->index[i] = -1;
	for (uint64_t m = 0; m < members; m++) {
		const char *name = bt_field_class_structure_member_get_name(
			bt_field_class_structure_borrow_member_by_index_const(payload, m));

		for (int i = 0; i < CTF_FIELD_MAX; i++)
			if (!strcmp(name, field_names[i]))
				c->index[i] = (int)m;
	}
	if (c->kind != CTF_OTHER && c->index[CTF_PTR] < 0)
		return tape_err_set(&im->err, -TAPE_E_FORMAT, "CTF (%s): event %s has no field ptr",
				    im->path, bt_event_class_get_name(event_class));
	im->last = c;
	return 0;
}

static int find_class(struct ctf_import *im, const bt_event *event)
{
	const bt_event_class *event_class = bt_event_borrow_class_const(event);

	if (im->last && im->last->event_class == event_class)
		return 0;
	for (size_t i = 0; i < im->classes_nr; i++) {
		if (im->classes[i].event_class == event_class) {
			im->last = &im->classes[i];
			return 0;
		}
	}
	return learn_class(im, event_class);
}

static const bt_field *payload_field(const struct ctf_class *c, const bt_field *payload,
				     enum ctf_field field)
{
	return c->index[field] < 0 ? NULL
				   : bt_field_structure_borrow_member_field_by_index_const(
					     payload, (uint64_t)c->index[field]);
}

static int learn_release(struct ctf_import *im, const bt_event *event)
{
	const bt_stream *stream = bt_event_borrow_stream_const(event);
	const bt_value *release = bt_trace_borrow_environment_entry_value_by_name_const(
		bt_stream_borrow_trace_const(stream), "kernel_release");

	im->release_known = true;
	if (!release || bt_value_get_type(release) != BT_VALUE_TYPE_STRING)
		return 0;
	return import_release(im->job, bt_value_string_get(release), &im->err);
}

static int site_of(struct ctf_import *im, uint64_t address, uint32_t *ret_site)
{
	struct ingest_symbol symbol = { .address = address };
	bool is_new;
	int rc = ingest_site_by_address(im->ing, address, ret_site, &is_new, &im->err);

	return rc >= 0 && is_new ? ingest_site_define(im->ing, *ret_site, &symbol, &im->err) : rc;
}

static void fill_alloc(struct ctf_import *im, const bt_field *payload, struct capture_raw *raw)
{
	const struct ctf_class *c = im->last;
	int64_t node = integer_of(payload_field(c, payload, CTF_NODE), TAPE_NODE_NONE);

	raw->bytes_req = (uint64_t)integer_of(payload_field(c, payload, CTF_BYTES_REQ), 0);
	raw->bytes_alloc = (uint64_t)integer_of(payload_field(c, payload, CTF_BYTES_ALLOC), 0);
	raw->gfp = capture_gfp_bits(&im->gfp,
				    (uint64_t)integer_of(payload_field(c, payload, CTF_GFP), 0));
	raw->accounted = integer_of(payload_field(c, payload, CTF_ACCOUNTED), 0) &&
			 raw->gfp & TAPE_GFP_ACCOUNT;
	raw->node_req = node >= 0 && node < TAPE_NODE_MAX ? (int16_t)node : TAPE_NODE_NONE;
}

static int take_event(struct ctf_import *im, const bt_message *message)
{
	const bt_event *event = bt_message_event_borrow_event_const(message);
	const bt_field *payload = bt_event_borrow_payload_field_const(event), *name;
	const bt_field *packet = bt_packet_borrow_context_field_const(
		bt_event_borrow_packet_const(event));
	struct capture_raw raw = { .node_req = TAPE_NODE_NONE };
	int64_t ts = 0, cpu = integer_of(member(packet, "cpu_id"), 0);
	int rc = find_class(im, event);

	if (rc >= 0 && !im->release_known)
		rc = learn_release(im, event);
	if (rc < 0)
		return rc;
	if (im->last->kind == CTF_OTHER) {
		im->job->stats->other++;
		return 0;
	}
	if (bt_clock_snapshot_get_ns_from_origin(
		    bt_message_event_borrow_default_clock_snapshot_const(message), &ts) ||
	    cpu < 0 || cpu >= TAPE_CPU_MAX)
		return tape_err_set(&im->err, -TAPE_E_FORMAT,
				    "CTF (%s): an event without time or with CPU %lld", im->path,
				    (long long)cpu);
	raw.ts = (uint64_t)ts;
	raw.cpu = (uint16_t)cpu;
	raw.is_free = im->last->kind == CTF_KFREE || im->last->kind == CTF_CACHE_FREE;
	raw.is_kmalloc = im->last->kind == CTF_KMALLOC || im->last->kind == CTF_KFREE;
	raw.address = (uint64_t)integer_of(payload_field(im->last, payload, CTF_PTR), 0);
	raw.tid = (int32_t)integer_of(member(bt_event_borrow_common_context_field_const(event),
					     "tid"), 0);
	name = payload_field(im->last, payload, CTF_NAME);
	if (name && bt_field_class_type_is(bt_field_get_class_type(name),
					   BT_FIELD_CLASS_TYPE_STRING)) {
		raw.cache = bt_field_string_get_value(name);
		raw.cache_len = (uint32_t)bt_field_string_get_length(name);
	}
	if (!raw.is_free)
		fill_alloc(im, payload, &raw);
	rc = site_of(im, (uint64_t)integer_of(payload_field(im->last, payload, CTF_SITE), 0),
		     &raw.site);
	return rc < 0 ? rc : ingest_event(im->ing, &raw, &im->err);
}

static int take_discarded(struct ctf_import *im, const bt_message *message)
{
	const bt_stream *stream = bt_message_discarded_events_borrow_stream_const(message);
	const bt_clock_snapshot *clock;
	int64_t begin = 0, end = 0;
	uint64_t events = 0;

	if (bt_message_discarded_events_get_count(message, &events) !=
	    BT_PROPERTY_AVAILABILITY_AVAILABLE)
		events = 0;
	if (bt_stream_class_discarded_events_have_default_clock_snapshots(
		    bt_stream_borrow_class_const(stream))) {
		clock = bt_message_discarded_events_borrow_beginning_default_clock_snapshot_const(
			message);
		if (bt_clock_snapshot_get_ns_from_origin(clock, &begin))
			begin = 0;
		clock = bt_message_discarded_events_borrow_end_default_clock_snapshot_const(
			message);
		if (bt_clock_snapshot_get_ns_from_origin(clock, &end))
			end = 0;
	}
	/* A counter that ran back at a rotation shows as a huge number (capture notes). */
	if (events >> 62)
		events = 0;
	return ingest_loss(im->ing, -1, (uint64_t)begin, (uint64_t)end, events,
			   "tracer discarded events", &im->err);
}

static bt_graph_simple_sink_component_initialize_func_status
sink_start(bt_message_iterator *iterator, void *data)
{
	((struct ctf_import *)data)->iterator = iterator;
	return BT_GRAPH_SIMPLE_SINK_COMPONENT_INITIALIZE_FUNC_STATUS_OK;
}

static bt_graph_simple_sink_component_consume_func_status
sink_consume(bt_message_iterator *iterator, void *data)
{
	struct ctf_import *im = data;
	bt_message_array_const messages;
	bt_message_iterator_next_status status;
	uint64_t nr = 0;

	status = bt_message_iterator_next(iterator, &messages, &nr);
	if (status == BT_MESSAGE_ITERATOR_NEXT_STATUS_END)
		return BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_END;
	if (status == BT_MESSAGE_ITERATOR_NEXT_STATUS_AGAIN)
		return BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_AGAIN;
	if (status != BT_MESSAGE_ITERATOR_NEXT_STATUS_OK)
		return BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_ERROR;
	for (uint64_t i = 0; i < nr; i++) {
		bt_message_type type = bt_message_get_type(messages[i]);

		if (im->rc >= 0 && type == BT_MESSAGE_TYPE_EVENT)
			im->rc = take_event(im, messages[i]);
		else if (im->rc >= 0 && type == BT_MESSAGE_TYPE_DISCARDED_EVENTS)
			im->rc = take_discarded(im, messages[i]);
		bt_message_put_ref(messages[i]);
	}
	return im->rc < 0 ? BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_ERROR
			  : BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_OK;
}

/* Why babeltrace2 failed, from its innermost cause. */
static int bt_fail(struct ctf_import *im)
{
	const bt_error *error = bt_current_thread_take_error();
	const char *why = "no reason given";

	if (im->rc >= 0) {
		if (error && bt_error_get_cause_count(error))
			why = bt_error_cause_get_message(
				bt_error_borrow_cause_by_index(error, 0));
		im->rc = tape_err_set(&im->err, -TAPE_E_FORMAT, "CTF (%s): %.300s", im->path, why);
	}
	if (error)
		bt_error_release(error);
	return im->rc;
}

struct ctf_graph {
	const bt_plugin *ctf, *utils;
	bt_graph *graph;
	const bt_component_source *source;
	const bt_component_filter *muxer;
	const bt_component_sink *sink;
};

/* Parameters of source.ctf.fs: { inputs: [path] }.  NULL: out of memory. */
static bt_value *source_parameters(const char *path)
{
	bt_value *parameters = bt_value_map_create(), *inputs = bt_value_array_create();

	if (!parameters || !inputs || bt_value_array_append_string_element(inputs, path) ||
	    bt_value_map_insert_entry(parameters, "inputs", inputs)) {
		bt_value_put_ref(parameters);
		parameters = NULL;
	}
	bt_value_put_ref(inputs);
	return parameters;
}

static bool add_components(struct ctf_import *im, struct ctf_graph *g)
{
	bt_value *parameters;
	bool ok;

	if (bt_plugin_find("ctf", BT_FALSE, BT_FALSE, BT_TRUE, BT_FALSE, BT_TRUE, &g->ctf) ||
	    bt_plugin_find("utils", BT_FALSE, BT_FALSE, BT_TRUE, BT_FALSE, BT_TRUE, &g->utils))
		return false;
	parameters = source_parameters(im->path);
	g->graph = bt_graph_create(0);
	ok = parameters && g->graph &&
	     !bt_graph_add_source_component(
		     g->graph,
		     bt_plugin_borrow_source_component_class_by_name_const(g->ctf, "fs"), "source",
		     parameters, BT_LOGGING_LEVEL_NONE, &g->source) &&
	     !bt_graph_add_filter_component(
		     g->graph,
		     bt_plugin_borrow_filter_component_class_by_name_const(g->utils, "muxer"),
		     "muxer", NULL, BT_LOGGING_LEVEL_NONE, &g->muxer) &&
	     !bt_graph_add_simple_sink_component(g->graph, "tape", sink_start, sink_consume, NULL,
						 im, &g->sink);
	bt_value_put_ref(parameters);
	return ok;
}

static bool connect(struct ctf_graph *g)
{
	uint64_t ports = bt_component_source_get_output_port_count(g->source);

	for (uint64_t i = 0; i < ports; i++)
		if (bt_graph_connect_ports(
			    g->graph,
			    bt_component_source_borrow_output_port_by_index_const(g->source, i),
			    bt_component_filter_borrow_input_port_by_index_const(g->muxer, i),
			    NULL))
			return false;
	return !bt_graph_connect_ports(
		g->graph, bt_component_filter_borrow_output_port_by_index_const(g->muxer, 0),
		bt_component_sink_borrow_input_port_by_index_const(g->sink, 0), NULL);
}

static int run_graph(struct ctf_import *im)
{
	struct ctf_graph g = { 0 };
	bt_graph_run_status status = BT_GRAPH_RUN_STATUS_ERROR;

	if (add_components(im, &g) && connect(&g))
		while ((status = bt_graph_run(g.graph)) == BT_GRAPH_RUN_STATUS_AGAIN)
			;
	if (status != BT_GRAPH_RUN_STATUS_OK)
		bt_fail(im);
	bt_graph_put_ref(g.graph);
	bt_plugin_put_ref(g.ctf);
	bt_plugin_put_ref(g.utils);
	return im->rc;
}

static int check_seen(struct ctf_import *im)
{
	const struct capture_stats *s = im->job->stats;

	if (s->kmalloc + s->cache_alloc + s->kfree + s->cache_free)
		return 0;
	return tape_err_set(&im->err, -TAPE_E_FORMAT,
			    "CTF (%s): no kmem event of lttng-modules in %llu events", im->path,
			    (unsigned long long)s->other);
}

int import_ctf(const char *path, const struct import_job *job, struct tape_err *reterr)
{
	struct ctf_import im = { .job = job, .path = path };
	int rc;

	capture_gfp_map_default(&im.gfp);
	bt_logging_set_global_level(BT_LOGGING_LEVEL_NONE);
	im.classes = calloc(CTF_CLASSES_MAX, sizeof(*im.classes));
	rc = im.classes ? ingest_create(job, &im.ing, &im.err)
			: tape_err_set(&im.err, -ENOMEM, "out of memory");
	if (rc >= 0)
		rc = run_graph(&im);
	if (rc >= 0)
		rc = check_seen(&im);
	if (rc >= 0)
		rc = tape_meta_set(job->t, "source", "ctf", &im.err);
	if (rc >= 0)
		rc = ingest_finish(im.ing, &im.err);
	ingest_destroy(im.ing);
	free(im.classes);
	return rc < 0 ? tape_err_set(reterr, rc, "%s", im.err.text) : rc;
}
