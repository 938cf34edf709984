-- question: Which caches keep falling off the fast path?
-- columns: run, variant, cache; allocs, frees; slow_allocs, slow_frees: share of them on the slow path, 0..1; from_partial: share of the slow allocations served by a partial slab, 0..1; per_refill: allocations per slow allocation; relisted: share of the slow frees that put a slab back on its node's list, 0..1
-- param run: one run (default: all)
-- param least=1000: leave out caches with fewer allocations and frees
-- example: slabtape query T thrash
WITH n(run, cache, allocs, slow_allocs, partial, frees, slow_frees, relisted) AS (
       SELECT run, cache,
              sum(value) FILTER (WHERE name IN ('alloc_fastpath', 'alloc_slowpath')),
              sum(value) FILTER (WHERE name = 'alloc_slowpath'),
              coalesce(sum(value) FILTER (WHERE name IN ('alloc_from_partial', 'alloc_refill',
                                                         'cpu_partial_alloc')), 0),
              sum(value) FILTER (WHERE name IN ('free_fastpath', 'free_slowpath')),
              sum(value) FILTER (WHERE name = 'free_slowpath'),
              coalesce(sum(value) FILTER (WHERE name = 'free_add_partial'), 0)
         FROM counter
        WHERE cpu IS NULL AND (:run IS NULL OR run = :run)
        GROUP BY run, cache)
SELECT n.run, r.variant, c.name AS cache, n.allocs, n.frees,
       round(1.0 * n.slow_allocs / nullif(n.allocs, 0), 4) AS slow_allocs,
       round(1.0 * n.slow_frees / nullif(n.frees, 0), 4) AS slow_frees,
       round(min(1.0 * n.partial / nullif(n.slow_allocs, 0), 1.0), 4) AS from_partial,
       round(1.0 * n.allocs / nullif(n.slow_allocs, 0), 1) AS per_refill,
       round(1.0 * n.relisted / nullif(n.slow_frees, 0), 4) AS relisted
  FROM n
  JOIN run r USING(run)
  LEFT JOIN cache c ON c.cache = n.cache
 WHERE coalesce(n.allocs, 0) + coalesce(n.frees, 0) >= :least
 ORDER BY n.run, slow_allocs DESC, cache;
