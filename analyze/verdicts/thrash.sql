-- question: Does a cache thrash: do its allocations keep falling off the fast path onto slabs with hardly a free object?
-- columns: run, variant, cache; allocs, frees; slow_allocs: share of the allocations that leave the fast path (sheaves: of the objects that come from slabs), 0..1; from_partial: share of those served from partial slabs, 0..1; per_refill: objects that a refill gets (sheaves: from one slab); relisted: share of the frees that put a full slab back on a list, 0..1
-- data: counters of a replay or of a recorded kernel (alloc_slowpath or sheaf_refill), or a run with --record refills
-- loss: 0.01
-- coverage: kernels too: bulk calls escape the kernel's counters of calls as they escape the tracer
-- param slow=0.25: a cpu slab of n objects leaves the fast path every n allocations; one in four is more than any slab that has room for five explains
-- param partial=0.5: below this most slow allocations get new slabs: the cache grows, it does not thrash
-- param few=4: objects per refill; the 2009 diagnosis found one or two, and a slab or sheaf that is half free gives eight or more
-- param relist=0.1: a full slab that goes back on a list every tenth free; lists that are not touched cannot be fought over
-- param least=1000: allocations; fewer say nothing about a rate
-- text thrash: {cache} thrashes on {variant}: {slow_allocs%} of {allocs} allocations leave the fast path, {from_partial%} of these go to partial slabs, a refill gets {per_refill} objects, and {relisted%} of the frees put a full slab back on a list
WITH n AS (
       SELECT run, cache,
              sum(value) FILTER (WHERE name IN ('alloc_fastpath', 'alloc_slowpath')) AS allocs,
              sum(value) FILTER (WHERE name IN ('free_fastpath', 'free_slowpath', 'free_rcu_sheaf')) AS frees,
              sum(value) FILTER (WHERE name = 'alloc_slowpath') AS slow,
              sum(value) FILTER (WHERE name IN ('alloc_from_partial', 'cpu_partial_alloc')) AS partial,
              sum(value) FILTER (WHERE name = 'alloc_slab') AS new_slabs,
              coalesce(sum(value) FILTER (WHERE name = 'objs_per_slab'),
                       (SELECT CAST(k.value AS INTEGER) FROM cache_knob k
                         WHERE k.cache = counter.cache AND k.knob = 'objs_per_slab')) AS per_slab,
              nullif(sum(value) FILTER (WHERE name = 'sheaf_refill'), 0) AS refilled,
              sum(value) FILTER (WHERE name = 'free_add_partial') AS add_partial,
              nullif(sum(value) FILTER (WHERE name = 'cpu_partial_free'), 0) AS add_cpu_partial
         FROM counter
        WHERE cpu IS NULL AND (:run IS NULL OR run = :run)
        GROUP BY run, cache),
     f AS (
       SELECT run, cache, sum(refills) AS refills, sum(objects) AS objects,
              total(refills) FILTER (WHERE source IN ('cpu_partial', 'node_partial', 'remote_node')) AS partial
         FROM refill_agg
        WHERE :run IS NULL OR run = :run
        GROUP BY run, cache),
     k AS (
       SELECT run, cache, sum(count) FILTER (WHERE class = 'full->partial') AS relists
         FROM free_class
        WHERE :run IS NULL OR run = :run
        GROUP BY run, cache),
     e AS (
       SELECT cache, sum(events) FILTER (WHERE op IN ('alloc', 'alloc_bulk', 'sheaf_alloc')) AS allocs,
              sum(events) FILTER (WHERE op IN ('free', 'free_rcu', 'free_bulk')) AS frees
         FROM chunk_stat
        GROUP BY cache),
     m AS (
       SELECT n.run, n.cache, coalesce(n.allocs, e.allocs, 0) AS allocs,
              coalesce(n.frees, e.frees, 0) AS frees,
              1.0 * coalesce(n.refilled, n.slow, f.refills) / coalesce(n.allocs, e.allocs) AS slow_allocs,
              CASE WHEN n.refilled THEN max(1 - 1.0 * n.new_slabs * n.per_slab / n.refilled, 0)
                   WHEN n.slow THEN 1.0 * n.partial / n.slow
                   ELSE f.partial / f.refills END AS from_partial,
              CASE WHEN n.refilled THEN 1.0 * n.refilled / nullif(n.add_partial + n.new_slabs, 0)
                   WHEN f.refills THEN 1.0 * f.objects / f.refills
                   ELSE 1.0 * n.allocs / n.slow END AS per_refill,
              1.0 * coalesce(k.relists, n.add_cpu_partial, n.add_partial)
                / nullif(coalesce(n.frees, e.frees), 0) AS relisted
         FROM n
         LEFT JOIN f ON f.run = n.run AND f.cache = n.cache
         LEFT JOIN k ON k.run = n.run AND k.cache = n.cache
         LEFT JOIN e ON e.cache = n.cache)
SELECT m.run, r.variant, c.name AS cache, m.allocs, m.frees, round(m.slow_allocs, 4) AS slow_allocs,
       round(m.from_partial, 4) AS from_partial, round(m.per_refill, 2) AS per_refill,
       round(m.relisted, 4) AS relisted,
       CASE WHEN m.slow_allocs >= :slow AND m.from_partial >= :partial AND m.per_refill <= :few
                 AND m.relisted >= :relist THEN 'thrash' END AS finding
  FROM m
  JOIN run r USING(run)
  JOIN cache c USING(cache)
 WHERE r.mode NOT IN ('before', 'after') AND (:cache IS NULL OR c.name = :cache)
   AND m.allocs >= :least AND m.slow_allocs IS NOT NULL
 ORDER BY m.run, m.slow_allocs DESC, c.name;
